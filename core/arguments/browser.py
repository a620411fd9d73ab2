"""What a browser is asked to do: which actions go somewhere, which stay, and which nobody can judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.arguments.addressed import squashed
from core.arguments.unclear import UnclearArgumentError
from core.display import safe

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
        "scroll", "scrollintoview", "drag", "select", "fill", "upload",
    }
)  # fmt: skip


# They go where the page has been. That was judged when it went there, but maybe by other rules.
_HISTORY = frozenset({"back", "forward", "goback", "goforward", "reload", "refresh"})
_SCRIPTS = frozenset(
    {
        "evaluate", "eval", "evaluatehandle", "evaluateonnewdocument", "execute", "executescript", "script",
        "runscript", "addscript", "addscripttag", "addinitscript", "javascript", "js",
    }
)  # fmt: skip
_SCRIPT_TEXTS = _SCRIPTS | {"fn", "func", "function", "expression", "code", "predicate", "pagefunction"}


def check_scripts(args: Mapping[str, Any], *, allowed: bool) -> None:
    """Refuse script text, which can send anything anywhere; raises UnclearArgumentError."""
    if allowed:
        return
    named = [squashed(value) for value in _action_and_kind(args) if isinstance(value, str)]
    request = args.get("request")
    keys = [*args, *(request if isinstance(request, Mapping) else ())]
    found = [name for name in named if name in _SCRIPTS]
    found += [str(key) for key in keys if squashed(str(key)) in _SCRIPT_TEXTS]
    if found:
        raise UnclearArgumentError(
            f"{safe(found[0][:40])} runs a script in the page, which can reach any address unjudged; "
            "tools.browser.evaluate: true allows it"
        )


def check_action(args: Mapping[str, Any], *, ruled: bool, scripts: bool) -> None:
    """Refuse an action without an address that could go anywhere; raises UnclearArgumentError.

    `ruled`: rules about origins exist, so that scripts and the history are refused too. `scripts`: without
    such rules, scripts are allowed.
    """
    check_scripts(args, allowed=scripts)
    action, kind = _action_and_kind(args)
    named = [squashed(name) for name in (action, kind) if isinstance(name, str)]
    if any(name in _GOING for name in named):
        raise UnclearArgumentError("the action goes somewhere, and no url says where; give one absolute URL")
    known = _STAYING if ruled else _STAYING | _HISTORY | _SCRIPTS
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise UnclearArgumentError(
            f"the action {unknown[:40]!r} may lead to addresses that no rule has judged"
        )
    if not isinstance(action, str) or not (kind is None or isinstance(kind, str)):
        raise UnclearArgumentError("the call names no action in plain text, so where it leads is unknown")


def _action_and_kind(args: Mapping[str, Any]) -> tuple[object, object]:
    request = args.get("request")
    return args.get("action"), request.get("kind") if isinstance(request, Mapping) else args.get("kind")
