"""`sayso sessions`, `sayso session bind|end`, `sayso elevated`: sessions, and what is set for them."""

from __future__ import annotations

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, verb
from bot.cli.session_modes import tighten
from bot.cli.terminal import ago, left, put_json, shown, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEADS = ("SESSION", "ELEVATED", "SET BY", "LEFT", "LAST ASKED", "CHATS")
_LEVELS = ("on", "ask", "full", "off")


_VERBS = {
    "bind": "make it the one that a chat means",
    "end": "end it, and what was set for it",
    "tighten": "give it stricter modes",
}


def sessions_command(arguments: list[str]) -> int:
    """List sessions."""
    parser = Parser("sessions", "List the sessions that asked, and what is set for each; the latest first.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    rows = ask("session.list")
    if options.json:
        put_json(rows)
    elif rows:
        table(_HEADS, [_cells(row) for row in rows])
    else:
        print("no session has asked for anything yet")
    return exits.OK


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    level = f"{row['elevated']} (break-glass)" if row["breakGlass"] else row["elevated"]
    chats = ", ".join(f"{channel} {place}" for channel, place in row["chats"])
    until = "" if row["setBy"] is None else left(row["until"]) or "until it ends"
    return row["session"], level, row["setBy"] or "", until, ago(row["lastRequest"]), chats


def session_command(arguments: list[str]) -> int:
    """Do what one verb says about one session."""
    which, rest = verb("session", arguments, "One session of an agent.", _VERBS)
    return {"bind": _bind, "end": _end, "tighten": tighten}[which](rest)


def _bind(arguments: list[str]) -> int:
    parser = Parser(
        "session bind", "Make a session the one that a chat means where it names none (/elevated on)."
    )
    parser.add_argument("session", metavar="SESSION", help="as sayso sessions shows it")
    parser.add_argument("channel", metavar="CHANNEL", help="telegram, discord or slack")
    parser.add_argument(
        "to", metavar="PLACE", help="as in approvals.exec.targets: user:ID, channel:ID or an id"
    )
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("session.bind", session=options.session, channel=options.channel, to=options.to)
    return _told(answer, as_json=options.json)


def _end(arguments: list[str]) -> int:
    parser = Parser("session end", "End a session: its level, permissions, chats and open questions.")
    parser.add_argument("session", metavar="SESSION", help="as sayso sessions shows it")
    parser.json_flag()
    options = parser.parse_args(arguments)
    return _told(ask("session.end", session=options.session), as_json=options.json)


def elevated_command(arguments: list[str]) -> int:
    """Set the level of a session."""
    parser = Parser(
        "elevated",
        "Set where the commands of a session run, and whether people are asked. What "
        "tools.elevated.allowFrom does not grant to cli:UID is break-glass: it demands a reason, and is "
        "announced in all channels. Full demands a time and a reason from everybody.",
    )
    parser.add_argument("session", metavar="SESSION", help="as sayso sessions shows it")
    parser.add_argument(
        "level", choices=_LEVELS, help="on the host: on as the policy says, ask always, full never; or off"
    )
    parser.add_argument("--for", dest="time", metavar="TIME", help="30s, 30m, 2h or 1d (default: open)")
    parser.add_argument("--reason", metavar="TEXT", help="kept in the record, and told to people")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask(
        "session.elevated.set",
        session=options.session,
        level=options.level,
        forMs=_milliseconds(options.time),
        reason=options.reason,
    )
    return _told(answer, as_json=options.json)


def _milliseconds(time: str | None) -> int | None:
    if time is None:
        return None
    from core.approvals.commands import duration_ms  # noqa: PLC0415 - what sets no time starts faster

    try:
        return duration_ms(time)
    except ValueError as error:
        raise exits.UsageError(f"elevated: {str(error).rstrip('.')}", "elevated") from None


def _told(answer: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK
