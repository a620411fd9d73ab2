"""However many files a line names, in whatever way: what is looked at, and what that costs, has an end."""

from __future__ import annotations

import time
import tracemalloc
from itertools import product

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.scripts import MAX_FILES, MAX_SEARCHED, MAX_VALUES, with_scripts
from tests.benchmarks.hostile_lines import LINES

PATH = ("/usr/local/bin", "/usr/bin", "/bin")
TOO_MANY = "one of more files than are looked at"
NAMES = tuple("".join(letters) for letters in product("abcdefgh", repeat=4))


def inspected(line: str, cwd: str) -> CommandFacts:
    resolver = FilesystemResolver().for_one_command()
    return inspect(CommandText(line=line), cwd=cwd, path=PATH, resolver=resolver)


def looked_at(line: str, cwd: str, env: tuple[tuple[str, str], ...] = ()) -> CommandFacts:
    return with_scripts(inspected(line, cwd), FilesystemResolver().for_one_command(), PATH, env)


def cost(line: str, cwd: str, env: tuple[tuple[str, str], ...] = ()) -> tuple[CommandFacts, float, int]:
    """Give the seconds of processor time, and the bytes at most, that looking takes."""
    facts = inspected(line, cwd)
    begun = time.process_time()
    found = with_scripts(facts, FilesystemResolver().for_one_command(), PATH, env)
    seconds = time.process_time() - begun
    tracemalloc.start()
    try:
        with_scripts(facts, FilesystemResolver().for_one_command(), PATH, env)
        return found, seconds, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def held(facts: CommandFacts) -> int:
    return sum(len(segment.scripts) for segment in facts.segments)


DEAR = [
    f"PATH=/{':/'.join(NAMES[:1000])} xargs '{' '.join(NAMES[:1000])}'",
    f"PATH=/{':/'.join(NAMES[:16])} xargs '{' '.join(NAMES)}'",
    f"env PATH=/{':/'.join(NAMES[:2000])} xargs '{' '.join(NAMES[:3000])}'",
    "node -" + "a" * 60_000,
    f"A='{' '.join(NAMES)}' make",
    "; ".join(["make"] * 60 + ["xargs '" + " ".join(NAMES[:2000]) + "'"]),
    "python3 -m " + "a." * 30_000 + "b",
]


@pytest.mark.parametrize("number", range(len(DEAR)))
def test_a_line_that_names_more_is_not_pinned(number, tmp_path):
    facts = looked_at(DEAR[number], str(tmp_path))
    assert facts.segments[-1].unpinned == TOO_MANY
    assert held(facts) <= MAX_FILES


@pytest.mark.parametrize("line", [*LINES.values(), *DEAR], ids=[*LINES, *map(str, range(len(DEAR)))])
def test_no_hostile_line_costs_much_to_look_at(line, tmp_path):
    _, seconds, most = cost(line, str(tmp_path))
    assert seconds < 1
    assert most < 50_000_000


VALUES = [
    (("V", ", " * 500_000),),
    tuple((f"V{number}", "x") for number in range(60_000)),
    tuple((f"V{number}", "x" * 2000) for number in range(200)),
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_what_a_request_sets_is_looked_at_to_an_end_too(number, tmp_path):
    facts, seconds, most = cost("; ".join(["make"] * 60), str(tmp_path), VALUES[number])
    assert seconds < 1
    assert most < 50_000_000
    assert facts.segments[-1].unpinned == TOO_MANY


def test_as_many_as_are_looked_at_are_pinned(tmp_path):
    searched = ":".join(f"/{name}" for name in NAMES[:MAX_SEARCHED])
    assert (
        looked_at(f"PATH={searched} xargs '{' '.join(NAMES[:20])}'", str(tmp_path)).segments[0].unpinned
        is None
    )
    assert (
        looked_at(f"PATH={searched}:/one xargs '{' '.join(NAMES[:20])}'", str(tmp_path)).segments[0].unpinned
        == TOO_MANY
    )
    env = tuple((name, "./x") for name in NAMES[: MAX_VALUES + 1])
    assert looked_at("make", str(tmp_path), env[:MAX_VALUES]).segments[0].unpinned is None
    assert looked_at("make", str(tmp_path), env).segments[0].unpinned == TOO_MANY


def test_a_directory_so_deep_that_paths_below_it_are_too_long_is_not_pinned(tmp_path):
    deep = tmp_path.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    assert looked_at("make -f x", str(deep)).segments[0].unpinned == TOO_MANY
    assert looked_at("make -f x", str(tmp_path)).segments[0].unpinned != TOO_MANY
