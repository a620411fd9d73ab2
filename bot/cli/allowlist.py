"""`sayso allowlist list|add|remove|export|import`: what may run without asking."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, verb
from bot.cli.terminal import ago, note, put_json, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOTHING = "nothing is on the list: every command is judged by the other rules alone"
_PLACES = {"sandbox": "in the sandbox", "host": "on the host", "client": "in the agent's own program"}
_VERBS = {
    "list": "list what may run without asking, and who said so",
    "add": "let commands run without asking, from now on",
    "remove": "take an entry back",
    "export": "write what is kept as exec-approvals.json",
    "import": "bring an exec-approvals.json along",
}


def allowlist_command(arguments: list[str]) -> int:
    """Show the allowlist, or change it."""
    verbs = {"list": _list, "add": _add, "remove": _remove, "export": _export, "import": _import}
    which, rest = verb("allowlist", arguments, "What may run without asking.", _VERBS)
    return verbs[which](rest)


def _list(arguments: list[str]) -> int:
    parser = Parser("allowlist list", "List what may run without asking, and who said so.")
    parser.add_argument("--agent", help="only what counts for this agent")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("allowlist.list", agent=options.agent)
    if options.json:
        put_json(answer)
        return exits.OK
    for row in answer["entries"]:
        _print_entry(row)
    if not answer["entries"]:
        print(_NOTHING)
    _print_settings(answer["settings"])
    return exits.OK


def _print_entry(row: dict[str, Any]) -> None:
    who = f"agent {row['agent']}" if row["agent"] else "every agent"
    head = (row["id"] or "")[:8] or "(file)"
    print(shown(f"{head:<8}  {row['pattern']}  ({row['words']})"))
    for line in (
        f"{who}, {_PLACES.get(row['placement'], row['placement'])}",
        _origin(row),
        _behind(row),
        row.get("admitsNothing"),
        _used(row),
    ):
        if line:
            print(shown(f"{'':<8}  {line}"))


def _origin(row: dict[str, Any]) -> str:
    if row["id"] is None:
        return (
            f"written in {row['source']} ({row['where']}); to end it, take it out there and run sayso reload"
        )
    by = f" by {row['by']}" if row["by"] else ""
    on = f", on request {row['request'][:8]}" if row["request"] else ""
    how = {"learned": "learned from an Always", "exec-approvals": "from exec-approvals.json"}
    return f"{how.get(row['source'], row['source'])}{by}, {ago(row['at'])}{on}"


def _behind(row: dict[str, Any]) -> str:
    pinned = ", as long as its content stays as it was" if row["sha256"] else ""
    if row["realPath"] in (None, row["pattern"]):
        return pinned.removeprefix(", ")
    return f"only while it leads to {row['realPath']}{pinned}"


def _used(row: dict[str, Any]) -> str:
    if row["id"] is None:
        return ""
    if row["lastUsedAt"] is None:
        return "never used"
    return f"last used {ago(row['lastUsedAt'])}: {row['lastUsedCommand']} ({row['lastResolvedPath']})"


def _print_settings(settings: dict[str, Any]) -> None:
    sections = [("defaults", settings["defaults"])]
    sections += [(f"agents.{agent}", section) for agent, section in settings["agents"].items()]
    told = [f"{name}.{key}: {value}" for name, section in sections for key, value in section.items()]
    if told:
        print(shown(f"exec-approvals.json also says {', '.join(told)}; it counts only where it is stricter"))


def _add(arguments: list[str]) -> int:
    parser = Parser("allowlist add", "Let commands run without asking, from now on and until it is removed.")
    parser.add_argument(
        "pattern", help="a path, a path glob (* ? stop at /, ** crosses), or a program's name"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--args", help="exactly these arguments, quoted as for a shell; '' for none")
    which.add_argument("--arg-pattern", help="an RE2 expression that the whole argument string must match")
    parser.add_argument("--agent", help="for this agent alone")
    parser.add_argument(
        "--placement", choices=("sandbox", "host", "client"), help="where it counts (default: sandbox)"
    )
    parser.json_flag()
    options = parser.parse_args(arguments)
    given = {"args": _words(options.args), "argPattern": options.arg_pattern, "agent": options.agent}
    answer = ask("allowlist.add", pattern=options.pattern, placement=options.placement, **given)
    if options.json:
        put_json(answer)
        return exits.OK
    _print_entry(answer["entry"])
    _print_notes(answer)
    return exits.OK


def _words(text: str | None) -> list[str] | None:
    if text is None:
        return None
    import shlex  # noqa: PLC0415 - only where arguments are given

    try:
        return shlex.split(text)
    except ValueError as error:
        raise exits.UsageError(f"allowlist add: --args {text[:60]!r}: {error}", "allowlist add") from None


def _remove(arguments: list[str]) -> int:
    parser = Parser("allowlist remove", "Take an entry back that was learned, added or imported.")
    parser.add_argument("id", help="what the list shows, or at least the first 8 characters of an id")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("allowlist.remove", id=options.id)
    if options.json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK


def _export(arguments: list[str]) -> int:
    parser = Parser("allowlist export", "Write what is kept as exec-approvals.json (version 1).")
    parser.add_argument("file", nargs="?", help="a new file; without it, to the standard output")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("exec.approvals.get")
    if options.json and options.file is None:
        put_json(answer)
        return exits.OK
    text = json.dumps(answer["document"], indent=2) + "\n"
    if options.file is None:
        sys.stdout.write(text)
        return exits.OK
    _write(options.file, text)
    note(f"written to {options.file}; entries of the configuration are not in it")
    return exits.OK


def _write(path: str, text: str) -> None:
    try:
        Path(path).touch(mode=0o600, exist_ok=False)
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        why = "is there already; name a new one" if isinstance(error, FileExistsError) else error.strerror
        raise exits.UsageError(f"allowlist export: {path} {why}", "allowlist export") from None


def _import(arguments: list[str]) -> int:
    parser = Parser(
        "allowlist import", "Bring an exec-approvals.json along; what is malformed changes nothing."
    )
    parser.add_argument("file", help="the file, or - for the standard input")
    parser.add_argument("--replace", action="store_true", help="forget what the file does not have")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("allowlist.import", document=_read(options.file), replace=options.replace)
    if options.json:
        put_json(answer)
        return exits.OK
    print(
        f"{len(answer['added'])} added, {len(answer['removed'])} removed, {answer['unchanged']} there already"
    )
    print("settings of the file count where they are stricter than the configuration")
    _print_notes(answer)
    return exits.OK


def _read(path: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
        document = json.loads(text, object_pairs_hook=_each_once)
    except OSError as error:
        raise exits.UsageError(f"allowlist import: {path}: {error.strerror}", "allowlist import") from None
    except (ValueError, RecursionError) as error:
        raise exits.UsageError(f"allowlist import: {path} is no JSON: {error}", "allowlist import") from None
    if not isinstance(document, dict):
        raise exits.UsageError(f"allowlist import: {path} holds no JSON object", "allowlist import")
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the key {twice!r} is there twice in one object; keep one")
    return dict(pairs)


def _print_notes(answer: dict[str, Any]) -> None:
    for each in answer["notes"]:
        note(f"note: {each}", "yellow")
