"""`sayso reload`: the running daemon reads its configuration again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, note, put_json, shown


def reload_command(arguments: list[str]) -> int:
    """Read the configuration again; a bad one changes nothing."""
    parser = Parser("reload", "Read the configuration again. A bad one changes nothing.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    told = ask("config.reload")
    if options.json:
        put_json(told)
    elif told["ok"]:
        print("\n".join(_changes(told)))
    else:
        note("nothing was changed; the configuration that was in force stays in force:", "red")
        for problem in told["problems"]:
            note(f"  {shown(problem)}")
    if not options.json:
        for warning in told["warnings"]:
            note(f"warning: {shown(warning)}", "yellow")
    return exits.OK if told["ok"] else exits.CONFIGURATION


def _changes(told: dict[str, Any]) -> Iterator[str]:
    if not told["atOnce"] and not told["atRestart"]:
        yield "read again; nothing differs from what is in force"
    if told["host"]:
        yield shown(told["host"])
    for change in told["atOnce"]:
        yield f"{coloured('in force', 'green')}     {_key(change)}"
    for change in told["atRestart"]:
        yield f"{coloured('at restart', 'yellow')}   {_key(change)}: {shown(change['whyLater'])}"


def _key(change: dict[str, Any]) -> str:
    written = f" ({shown(change['where'])})" if change["where"] else " (the default again)"
    return shown(change["key"]) + written
