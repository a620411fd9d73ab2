"""`sayso approve`, `deny`, `cancel`, `lock`, `unlock`: what the operator decides."""

from __future__ import annotations

import re

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser
from bot.cli.terminal import put_json, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def approve_command(arguments: list[str]) -> int:
    """Say yes."""
    parser = _about_one(
        "approve", "Say yes: once, always, or for a time.", "[once|always [any]|for TIME [--max-uses N]]"
    )
    parser.add_argument("how", nargs="*", default=[], metavar="how", help=_HOW)
    parser.add_argument("--reason", metavar="T", help="kept in the record, and told to the agent")
    parser.add_argument("--max-uses", metavar="N", help="with a time: run the same at most N times more")
    options = parser.parse_intermixed_args(arguments)
    answer = ask(
        "exec.approval.resolve",
        id=options.id,
        reason=options.reason,
        **_approval(options.how),
        **_limited(options.max_uses, options.how),
    )
    return _told(answer, as_json=options.json)


_HOW = "once (default), always, always any (arguments), or for and a time such as 30s, 30m, 2h or 1d"


def _approval(how: list[str]) -> dict[str, Any]:
    match how:
        case [] | ["once"]:
            return {"decision": "allow-once"}
        case ["always"]:
            return {"decision": "allow-always"}
        case ["always", "any"]:
            return {"decision": "allow-always-any"}
        case ["for"] | ["for", _]:
            return {"decision": "allow-for", "forMs": _time("".join(how[1:]))}
    raise exits.UsageError(
        f"approve: say once, always or for a time (for 30m), not {' '.join(how)[:60]!r}", "approve"
    )


def _time(word: str) -> int:
    from core.approvals.commands import duration_ms  # noqa: PLC0415 - other answers start faster without it

    try:
        return duration_ms(word)
    except ValueError as error:
        raise exits.UsageError(f"approve: {str(error).rstrip('.')}", "approve") from None


def _limited(uses: str | None, how: list[str]) -> dict[str, int]:
    if uses is None:
        return {}
    if how[:1] != ["for"]:
        raise exits.UsageError("approve: --max-uses goes with a time, as in: for 30m --max-uses 3", "approve")
    from core.model.standing import MOST_USES as most  # noqa: PLC0415, N811 - as above; a bound in a sentence

    least = 1
    if not re.fullmatch("[0-9]{1,5}", uses) or not least <= int(uses) <= most:
        raise exits.UsageError(
            f"approve: --max-uses is a number from {least} to {most}, not {uses[:60]!r}", "approve"
        )
    return {"maxUses": int(uses)}


def deny_command(arguments: list[str]) -> int:
    """Say no."""
    parser = _about_one("deny", "Say no: this time, or always.", "[always]")
    always = "deny exactly this command of this agent from now on, until it is revoked"
    parser.add_argument("how", nargs="*", default=[], metavar="always", help=always)
    parser.add_argument("--reason", metavar="T", help="told to the agent, and kept in the record")
    options = parser.parse_intermixed_args(arguments)
    if options.how not in ([], ["always"]):
        stray = next((word for word in options.how if word != "always"), "always")
        raise exits.UsageError(f"deny: what is {stray[:60]!r}? a reason goes after --reason", "deny")
    decision = "deny-always" if options.how else "deny"
    answer = ask("exec.approval.resolve", id=options.id, decision=decision, reason=options.reason)
    return _told(answer, as_json=options.json)


def cancel_command(arguments: list[str]) -> int:
    """End a run."""
    options = _about_one("cancel", "End a run.").parse_args(arguments)
    return _told(ask("request.cancel", id=options.id), as_json=options.json)


def lock_command(arguments: list[str]) -> int:
    """Stop everything."""
    parser = Parser("lock", "Stop everything: deny every request, end what runs, until unlocked.")
    return _lock(parser, arguments, locked=True)


def unlock_command(arguments: list[str]) -> int:
    """Resume."""
    return _lock(Parser("unlock", "Take requests again."), arguments, locked=False)


def _lock(parser: Parser, arguments: list[str], *, locked: bool) -> int:
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("lock.set", locked=locked)
    return _told({"accepted": True, **answer}, as_json=options.json)


def _about_one(command: str, description: str, how: str = "") -> Parser:
    usage = f"sayso {command} ID {how} [--reason T] [--json]" if how else None
    parser = Parser(command, description, usage)
    parser.add_argument("id", help="the request, or the first 8 characters of its id")
    parser.json_flag()
    return parser


def _told(answer: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK if answer["accepted"] else exits.DIFFERENCE
