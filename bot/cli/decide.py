"""`sayso approve`, `deny`, `cancel`, `lock`, `unlock`: what the operator decides."""

from __future__ import annotations

from typing import Any

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser
from bot.cli.terminal import put_json, shown

_APPROVALS = {(): "allow-once", ("once",): "allow-once", ("always",): "allow-always"}


def approve_command(arguments: list[str]) -> int:
    """Say yes."""
    parser = _about_one("approve", "Say yes: once, or always.")
    parser.add_argument("how", nargs="*", default=[], metavar="once|always", help="once (default), or always")
    parser.add_argument("--reason", metavar="T", help="kept in the record")
    options = parser.parse_args(arguments)
    how = tuple(options.how)
    if how[:1] == ("for",):
        raise exits.UsageError("approve: approving for a time is not available in this version", "approve")
    if how not in _APPROVALS:
        raise exits.UsageError(f"approve: say once or always, not {' '.join(how)!r}", "approve")
    answer = ask("exec.approval.resolve", id=options.id, decision=_APPROVALS[how], reason=options.reason)
    return _told(answer, as_json=options.json)


def deny_command(arguments: list[str]) -> int:
    """Say no."""
    parser = _about_one("deny", "Say no.")
    parser.add_argument("how", nargs="*", default=[], metavar="", help="")
    parser.add_argument("--reason", metavar="T", help="told to the agent, and kept in the record")
    options = parser.parse_args(arguments)
    if options.how == ["always"]:
        raise exits.UsageError("deny: denying always is not available in this version", "deny")
    if options.how:
        raise exits.UsageError(f"deny: what is {options.how[0][:60]!r}? a reason goes after --reason", "deny")
    answer = ask("exec.approval.resolve", id=options.id, decision="deny", reason=options.reason)
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


def _about_one(command: str, description: str) -> Parser:
    parser = Parser(command, description)
    parser.add_argument("id", help="the request, or the first 8 characters of its id")
    parser.json_flag()
    return parser


def _told(answer: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK if answer["accepted"] else exits.DIFFERENCE
