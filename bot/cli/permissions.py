"""`sayso permissions [list|revoke]`: what answers left standing, to see and to end."""

from __future__ import annotations

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, leading, verb
from bot.cli.terminal import left, put_json, shown, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEADS = ("ID", "ANSWER", "AGENT", "BY", "TIME", "USED", "COMMAND")
_NONE = "nothing stands: no command is allowed for a time, and none denied always"


def permissions_command(arguments: list[str]) -> int:
    """List what stands, or revoke one."""
    if all(word.startswith("-") for word in arguments[len(leading(arguments)) :]):
        return _list(arguments)
    verbs = {"list": "list what stands", "revoke": "take one back"}
    which, rest = verb("permissions", arguments, "What answers left standing.", verbs)
    return {"list": _list, "revoke": _revoke}[which](rest)


def _list(arguments: list[str]) -> int:
    parser = Parser(
        "permissions",
        "List what was allowed for a time or denied always, oldest first.",
        "sayso permissions [list] [--json] | sayso permissions revoke ID [--json]",
    )
    parser.json_flag()
    options = parser.parse_args(arguments)
    rows = ask("permission.list")
    if options.json:
        put_json(rows)
    elif rows:
        table(_HEADS, [_cells(row) for row in rows])
    else:
        print(_NONE)
    return exits.OK


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    until = left(row["expiresAt"]) or "until revoked"
    return row["id"][:8], row["effect"], row["agent"], row["by"], until, _used(row), row["command"]


def _used(row: dict[str, Any]) -> str:
    if row["uses"] is None:
        return "-"
    return f"{row['uses']} of {row['maxUses']}" if row["maxUses"] else str(row["uses"])


def _revoke(arguments: list[str]) -> int:
    parser = Parser("permissions revoke", "Take an answer back that still stands.")
    parser.add_argument("id", help="what the list shows, or at least the first 8 characters of an id")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("permission.revoke", id=options.id)
    if options.json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK
