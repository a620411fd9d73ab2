"""What a browser is asked to do: which actions go somewhere, which stay, and which nobody can judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.arguments.addressed import squashed
from core.arguments.unclear import UnclearArgumentError

# Where browsers' tools take their address.
ADDRESS_PLACES = ("url", "targetUrl", "target_url", "request.url", "request.targetUrl")

_GOING = frozenset(
    {"navigate", "open", "goto", "go", "visit", "load", "newtab", "opentab", "browse", "present"}
)
# Nothing here names an address. What a click leads to is judged when the client keeps `judge-redirects`.
_STAYING = frozenset(
    {
        "status", "start", "stop", "profiles", "tabs", "focus", "close", "snapshot", "screenshot", "console",
        "pdf", "act", "dialog", "hide", "wait", "resize", "click", "doubleclick", "type", "press", "hover",
        "scroll", "scrollintoview", "drag", "select", "fill",
    }
)  # fmt: skip


def check_action(args: Mapping[str, Any], *, ruled: bool) -> None:
    """Refuse an action without an address that could go anywhere; raises UnclearArgumentError.

    `ruled`: rules about origins exist, so that what cannot be judged is refused.
    """
    action, request = args.get("action"), args.get("request")
    kind = request.get("kind") if isinstance(request, Mapping) else args.get("kind")
    named = [squashed(name) for name in (action, kind) if isinstance(name, str)]
    if any(name in _GOING for name in named):
        raise UnclearArgumentError("the action goes somewhere, and no url says where; give one absolute URL")
    if not ruled:
        return
    unknown = next((name for name in named if name not in _STAYING), None)
    if unknown is not None:
        raise UnclearArgumentError(f"the action {unknown[:40]!r} may lead to origins that no rule has judged")
    if not isinstance(action, str) or not (kind is None or isinstance(kind, str)):
        raise UnclearArgumentError("the call names no action, and rules about origins exist")
