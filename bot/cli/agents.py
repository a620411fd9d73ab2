"""`sayso agent add|list|revoke`: tokens of agents."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, verb
from bot.cli.terminal import note, put_json, table
from bot.client import home

_VERBS = {
    "add": "mint a token for an agent",
    "list": "list the agents that have tokens",
    "revoke": "end an agent's token at once",
}


def agent_command(arguments: list[str]) -> int:
    """Mint, list or revoke tokens."""
    which, rest = verb("agent", arguments, "The tokens of agents.", _VERBS)
    return {"add": _add, "list": _list, "revoke": _revoke}[which](rest)


def _add(arguments: list[str]) -> int:
    parser = Parser("agent add", "Mint a token for an agent; it is told once.")
    parser.add_argument("id", help="lower case letters, digits, - and _")
    parser.add_argument(
        "--save", action="store_true", help="write it where `sayso exec` on this machine looks"
    )
    parser.json_flag()
    options = parser.parse_args(arguments)
    made = ask("agent.add", agent=options.id)
    if options.save:
        note(f"saved in {_save(options.id, made['token'])}")
    if options.json:
        put_json(made)
    elif not options.save:
        print(made["token"])
        note(f"this is told once; give it to the agent as SAYSO_TOKEN, with SAYSO_AGENT={options.id}")
    return exits.OK


def _save(agent: str, token: str) -> Path:
    folder = Path(home()) / "agents"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{agent}.token"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return path


def _list(arguments: list[str]) -> int:
    parser = Parser("agent list", "List agents.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    agents = ask("agent.list")
    if options.json:
        put_json(agents)
        return exits.OK
    rows = [(a["id"], _day(a["createdAt"]), _day(a["revokedAt"]) or "-") for a in agents]
    if rows:
        table(("AGENT", "SINCE", "REVOKED"), rows)
    else:
        sys.stdout.write("no agents; sayso agent add ID makes one\n")
    return exits.OK


def _day(at_ms: int | None) -> str:
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _revoke(arguments: list[str]) -> int:
    parser = Parser("agent revoke", "End an agent's token at once.")
    parser.add_argument("id")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("agent.revoke", agent=options.id)
    if options.json:
        put_json(answer)
    else:
        print(f"the token of {options.id} does not count any more")
    return exits.OK
