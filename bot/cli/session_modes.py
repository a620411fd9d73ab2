"""`sayso session tighten`: stricter modes for one session and its subagents."""

from __future__ import annotations

from bot.cli import exits
from bot.cli.exits import UsageError
from bot.cli.operator import ask
from bot.cli.parser import Parser
from bot.cli.terminal import put_json, shown, table

_HEADS = ("SESSION", "SECURITY", "ASK")
_NONE = "nothing is set: what is configured holds for every session"


def tighten(arguments: list[str]) -> int:
    """Set, clear or list the modes of sessions."""
    parser = Parser(
        "session tighten",
        "Make exec stricter for a session and its subagents, until that is cleared; never milder. "
        "Without a session: list what is set.",
    )
    parser.add_argument("session", nargs="?", help="its key, as agent:main:main")
    parser.add_argument("--security", choices=("deny", "allowlist"), help="run nothing; only what is listed")
    parser.add_argument("--ask", choices=("always", "on-miss"), help="ask each time; where nothing is listed")
    parser.add_argument("--clear", action="store_true", help="forget what was set for the session")
    parser.json_flag()
    options = parser.parse_args(arguments)
    given = bool(options.security or options.ask)
    if options.session is None:
        if given or options.clear:
            raise UsageError("session tighten: say which session, as agent:main:main", "session tighten")
        return _list(as_json=options.json)
    if given is options.clear:
        raise UsageError("session tighten: give --security, --ask or both, or --clear", "session tighten")
    if options.clear:
        answer = ask("session.clear", session=options.session)
    else:
        answer = ask("session.tighten", session=options.session, security=options.security, ask=options.ask)
    if options.json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK


def _list(*, as_json: bool) -> int:
    rows = ask("session.tightened")
    if as_json:
        put_json(rows)
    elif rows:
        table(_HEADS, [(row["session"], row["security"] or "-", row["ask"] or "-") for row in rows])
    else:
        print(_NONE)
    return exits.OK
