"""`sayso policy test`: cases written as YAML against the policy, without asking or running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.cli import exits
from bot.cli.configuration import loaded
from bot.cli.parser import Parser, verb
from bot.cli.terminal import coloured, note, put_json, shown
from bot.client import home
from bot.policy_bench import Bench, Difference, Result
from bot.policy_cases import CaseFile, case_files, read_cases
from core.errors import ConfigError


def policy_command(arguments: list[str]) -> int:
    """Test the policy: exit 0 where every case is answered as expected, 1 where one is not."""
    verbs = {"test": "judge cases written as YAML, and compare with what they expect"}
    _, rest = verb("policy", arguments, "The policy, without a daemon.", verbs)
    options = _parser().parse_args(rest)
    if not options.files:
        raise exits.UsageError("policy: give a file of cases, or a directory", "policy test")
    try:
        files = _read(options.files)
        results = _judged(files, options.config)
    except ConfigError as error:
        raise exits.BadConfiguration(str(error)) from None
    put_json(_summary(results)) if options.json else _print(files, results)
    return exits.DIFFERENCE if any(result.differences for result in results) else exits.OK


def _parser() -> Parser:
    parser = Parser(
        "policy test",
        "Judge cases written as YAML, without a daemon; nothing is asked or run.",
        client=False,
    )
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="cases; a directory: all *.cases.yaml in it"
    )
    parser.add_argument(
        "--config", action="append", type=Path, default=[], metavar="F", help="instead of what the files name"
    )
    parser.json_flag()
    return parser


def _read(paths: Sequence[Path]) -> list[CaseFile]:
    """Read all files before any case is judged, and tell at once what is wrong with any of them."""
    found, problems = [], []
    for path in case_files(paths):
        try:
            found.append(read_cases(path))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _judged(files: Sequence[CaseFile], config: Sequence[Path]) -> list[Result]:
    benches: dict[tuple[Path, ...], Bench] = {}
    results, problems = [], []
    for file in files:
        paths = tuple(config) or file.config
        if not paths:
            note(f"{file.path} names no config and there is no --config: the defaults are tested")
        if paths not in benches:
            benches[paths] = Bench(loaded(paths), Path(home()))
        for case in file.cases:
            try:
                results.append(benches[paths].result(case))
            except ConfigError as error:
                problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return results


def _summary(results: Sequence[Result]) -> dict[str, Any]:
    differing = sum(bool(result.differences) for result in results)
    rows = [_row(result) for result in results]
    return {"ok": not differing, "cases": len(results), "differing": differing, "results": rows}


def _row(result: Result) -> dict[str, Any]:
    origin = result.case.origin
    told = {"effect", "reason", "rule", "source", "where", "placement", "canonical"}
    return {
        "name": result.case.name,
        "file": origin.source,
        "line": origin.line,
        "ok": not result.differences,
        "differences": [
            {"field": each.field, "expected": each.expected, "got": each.got} for each in result.differences
        ],
        "answer": {key: value for key, value in result.answer.items() if key in told},
    }


def _print(files: Sequence[CaseFile], results: Sequence[Result]) -> None:
    for result in results:
        if result.differences:
            print(f"{coloured('differs', 'red')}  {shown(result.case.name)}  ({result.case.origin})")
            _print_differences(result.differences)
        else:
            print(f"{coloured('ok', 'green')}       {shown(result.case.name)}")
    differing = sum(bool(result.differences) for result in results)
    ended = f"{differing} differ" if differing else "all as expected"
    of_files = f" in {len(files)} files" if len(files) > 1 else ""
    print(coloured(f"{len(results)} cases{of_files}: {ended}", "red" if differing else "green"))


def _print_differences(differences: Sequence[Difference]) -> None:
    width = max(len("because"), *(len(each.field) for each in differences))
    for each in differences:
        print(f"    {each.field.ljust(width)}  expected {shown(each.expected)}, got {shown(each.got)}")
    told = {(each.reason, _written(each)): None for each in differences if each.reason}
    for reason, written in told:
        print(f"    {'because'.ljust(width)}  {shown(reason)}")
        print(f"    {'written'.ljust(width)}  {shown(written)}")


def _written(difference: Difference) -> str:
    where = f" ({difference.where})" if difference.where else ""
    return f"{difference.source}{where}, rule {difference.rule}"
