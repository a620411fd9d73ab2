"""Finds out whether the peer of a socket lives in a user namespace of its own, as sandboxes do."""

from __future__ import annotations

import os
import socket

from adapters.ingress.terminals import alive, pinned
from adapters.user_namespaces import lives_apart
from core.model.principal import PeerCredentials

_APART = (
    "the operator's role is refused to a process in another user namespace than the daemon's (a sandbox, or "
    "a run that Sayso holds); call it from outside of that"
)
_GONE = "the process that connected has ended, so nobody can tell where this comes from; connect anew"


def refusal_of(sock: socket.socket, peer: PeerCredentials) -> str | None:
    """Say why this peer cannot be the operator; None where it lives beside the daemon, or none can see."""
    if peer.pid <= 0:  # of a PID namespace that cannot be seen from here
        return None
    held = pinned(sock, peer.pid)
    if held is None:
        return _GONE
    try:
        apart = lives_apart(peer.pid)
        # Looked at before: while it lives its pid is nobody else's.
        return _APART if apart else None if alive(held) else _GONE
    finally:
        os.close(held)
