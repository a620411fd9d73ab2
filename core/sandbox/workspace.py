"""Where a session's workspace lies; making it is the runners' work."""

from __future__ import annotations

import hashlib
from posixpath import join

from core.config import Scope
from core.model.session import SessionKey

SYSTEM_ROOT = "/var/lib/sayso"


def default_root(state_dir: str, is_root: bool) -> str:  # noqa: FBT001 - one fact, asked for by name everywhere
    """Return where workspaces lie when the configuration names no place."""
    if not is_root:
        return f"{state_dir.rstrip('/')}-workspaces"  # beside the state: nothing in that may be touched
    # Root's state directory is usually below /root, which the sandbox account cannot pass and which is not
    # ours to open. Each state directory gets a place of its own that this account can reach.
    return join(SYSTEM_ROOT, hashlib.sha256(state_dir.encode()).hexdigest()[:12], "workspaces")


def directory_for(root: str, scope: Scope, session: SessionKey) -> str:
    """Name the directory that this scope gives a session; two scopes or keys never share a name."""
    if scope is Scope.SHARED:
        return join(root, "shared")
    if scope is Scope.AGENT:
        return join(root, f"agent-{session.agent}")
    digest = hashlib.sha256(str(session).encode()).hexdigest()[:24]
    return join(root, f"session-{session.agent}-{digest}")
