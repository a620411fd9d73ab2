"""`sayso explain` and `sayso tools`: what would be decided, without asking or running."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, count, split_command
from bot.cli.policy_print import print_decision, print_tools
from bot.cli.run import json_object
from bot.cli.terminal import note, put_json
from bot.client import NoToken, Unreachable, home
from core.errors import SaysoError

Json = dict[str, Any]
Answer = Callable[[Json], Json]

_EXPLAIN_USAGE = "sayso explain [options] (-c LINE | -- CMD… | --tool T [--args JSON] | --batch)"


def explain_command(arguments: list[str]) -> int:
    """Tell the whole decision for one call, or for many rows."""
    before, argv = split_command(arguments)
    parser = Parser(
        "explain", "Tell the whole decision for one call, without asking or running.", _EXPLAIN_USAGE
    )
    _common(parser)
    parser.add_argument("-c", dest="command", metavar="LINE", help="a shell line")
    parser.add_argument("--tool", metavar="T", help="a tool (default: exec)")
    parser.add_argument("--args", metavar="JSON", help="the tool's arguments")
    parser.add_argument("--cwd", metavar="D", help="the directory to run in")
    parser.add_argument("--elevated", metavar="L", help="the level asked for")
    options = parser.parse_args(before)
    if options.batch:
        return _batch(_explainer(options), _bad_call)
    row = {**_row(options, ("command", "tool", "cwd", "elevated")), **_arguments(options, argv)}
    if not row.keys() & {"command", "argv", "tool"}:
        raise exits.UsageError("explain: give a command after --, a line with -c, or --tool", "explain")
    answer = _answer(options, "policy.explain", row, _explainer)
    put_json(answer) if options.json else print_decision(answer)
    return exits.OK


def tools_command(arguments: list[str]) -> int:
    """Tell the frozen tool set, and why each other tool is out."""
    parser = Parser("tools", "Tell which tools an agent has, and why each other one is out.")
    _common(parser)
    options = parser.parse_args(arguments)
    if options.batch:
        return _batch(_tool_lister(options), _bad_identity)
    answer = _answer(options, "policy.tools", _row(options, ()), _tool_lister)
    put_json(answer) if options.json else print_tools(answer)
    return exits.OK


def _common(parser: Parser) -> None:
    parser.add_argument(
        "--config", action="append", type=Path, default=[], metavar="F", help="instead of the daemon's"
    )
    parser.add_argument(
        "--batch", action="store_true", help="JSON lines in, one JSON line out for each; no daemon needed"
    )
    for option in ("agent", "session", "provider", "model"):
        parser.add_argument(f"--{option}", metavar="X", help=f"as this {option}")
    parser.add_argument("--depth", type=count, metavar="N", help="as a subagent of this depth")
    parser.json_flag()


def _row(options: Namespace, more: tuple[str, ...]) -> Json:
    names = ("agent", "session", "provider", "model", "depth", *more)
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _arguments(options: Namespace, argv: list[str] | None) -> Json:
    more: Json = {}
    if argv is not None:
        if not argv or options.command is not None:
            raise exits.UsageError("explain: give one command, after -- or with -c", "explain")
        more["argv"] = argv
    if options.args is not None:
        more["args"] = json_object(options.args, "explain", "--args")
    return more


def _answer(options: Namespace, method: str, row: Json, offline: Callable[[Namespace], Answer]) -> Json:
    """Ask the daemon, whose configuration and allowlist are in force; files alone where it is not there."""
    if not options.config:
        try:
            answer: Json = ask(method, row=row)
        except (Unreachable, NoToken):
            note("no daemon answers: this is decided from the configuration files alone")
        else:
            return answer
    try:
        return offline(options)(row)
    except SaysoError as error:
        raise exits.UsageError(str(error)) from None


def _explainer(options: Namespace) -> Answer:
    from bot.cli.configuration import loaded  # noqa: PLC0415 - not where the daemon answers
    from bot.explain import Explainer  # noqa: PLC0415 - as above

    return Explainer(loaded(options.config), Path(home())).row


def _tool_lister(options: Namespace) -> Answer:
    from bot.cli.configuration import loaded  # noqa: PLC0415 - as above
    from bot.config import merge  # noqa: PLC0415 - as above
    from core.policy import tools_row  # noqa: PLC0415 - as above

    base = loaded(options.config)

    def answer(row: Json) -> Json:
        own = row.get("config")
        held = merge(base, own) if own else base
        told = tools_row(held.config, row)
        for gone in told["denied"].values():
            gone["where"] = held.where(gone["source"])
        return told

    return answer


def _batch(answer: Answer, bad: Callable[[Any, str, str | None], Json]) -> int:
    """Answer row after row; a bad one gets an answer that says so, and the next one is read."""
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.write(_one(answer, bad, line) + "\n")
            sys.stdout.flush()
    return exits.OK


def _one(answer: Answer, bad: Callable[[Any, str, str | None], Json], line: bytes) -> str:
    row: Any = None
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            return json.dumps(bad(None, "a row is a JSON object", None))
        return json.dumps(answer(row), allow_nan=False)
    except SaysoError as error:
        return json.dumps(bad(_id_of(row), str(error), getattr(error, "field", None)))
    except Exception as error:  # noqa: BLE001 - one row, whatever is wrong with it, must not end the others
        return json.dumps(bad(_id_of(row), f"{type(error).__name__}: {error}", None))


def _id_of(row: Any) -> str | int | None:  # noqa: ANN401 - any JSON value
    found = row.get("id") if isinstance(row, dict) else None
    return found if isinstance(found, str | int) else None


def _bad_identity(row_id: Any, message: str, field: str | None) -> Json:  # noqa: ANN401 - as it came
    error = {"message": message, "field": field}
    return {"id": row_id, "error": error, "allowed": [], "denied": {}, "warnings": [message]}


def _bad_call(row_id: Any, message: str, field: str | None) -> Json:  # noqa: ANN401 - as it came
    error = {"message": message, "field": field}
    told = {"reason": message, "rule": "bad-row", "source": field or "row"}
    return {"id": row_id, "error": error, "effect": "deny", "layer": "exec_security", **told, "trace": []}
