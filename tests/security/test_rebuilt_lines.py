"""What is rebuilt from the analysis runs the same programs with the same words as the line asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import Executable, Segment
from core.shell.inspect import inspect
from core.shell.names import names
from core.shell.programs import CARRIERS
from tests.security.bash_world import BashWorld

# Options and operands that each knows, and a few that nobody does.
OPTIONS = {
    "env": [
        ["-u", "X"],
        ["-uX"],
        ["--unset=X"],
        ["--unset", "X"],
        ["--"],
        ["A=1"],
        ["-C", "sub"],
        ["-S", "rg y"],
    ],
    "nice": [["-n", "5"], ["-n5"], ["-5"], ["--adjustment=5"], ["--adj", "5"], ["--"]],
    "timeout": [
        ["-k", "1"],
        ["-vk1"],
        ["-s", "KILL"],
        ["--signal", "KILL"],
        ["--"],
        ["5"],
        ["5s"],
        ["-t", "5"],
    ],
    "nohup": [["--"], ["-x"]],
    "stdbuf": [["-oL"], ["-o", "L"], ["-e0"], ["--output=L"], ["--"], ["-x"]],
    "ionice": [["-c", "3"], ["-c3"], ["-t"], ["-tc3"], ["-p", "1"], ["--"]],
}
WORDS = ["rg", "id", "-x", "a b", "*", "$x", "", "'", '"', "a;id", "A=1", "--", "if", "~", "\\"]
SCRIPTS = [
    '$0 "$1"',
    '"$0" "$@"',
    'exec "$0" "$@"',
    "$0 $1 $2",
    '${0} "${2}"',
    '$0; "$1"',
    '"$0" "$3" x',
    "rg x",
    "'$0'",
]
WRAPPED = st.lists(
    st.sampled_from(sorted(OPTIONS)).flatmap(
        lambda name: st.lists(st.sampled_from(OPTIONS[name]), max_size=2).map(lambda given: (name, given))
    ),
    min_size=1,
    max_size=5,
).map(lambda found: [word for name, given in found for word in (name, *chain.from_iterable(given))])
COMMAND = st.lists(st.sampled_from(WORDS), max_size=3)


class Trusting(FilesystemResolver):
    """Takes the stubs for programs that only root can change."""

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        found = super().find(name, path=path, cwd=cwd)
        return replace(found, trusted=True) if found else None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> BashWorld:
    return BashWorld(Path(tmp_path_factory.mktemp("bash")))


def noted(segment: Segment) -> str:
    """Give the note of a stub that is run with these words."""
    name, *arguments = segment.argv
    return " ".join([Path(name).name, *filter(None, [" ".join(arguments)])])


def compare(world: BashWorld, words: Sequence[str]) -> bool:
    """Compare what both lines run; tells whether anything was looked through."""
    line = shlex.join(words)
    facts = inspect(CommandText(line=line), cwd=world.work, path=(world.programs,), resolver=Trusting())
    if not facts.analysable or not any(segment.through for segment in facts.segments):
        return False
    asked, rebuilt = world.run(line), world.run(facts.canonical)
    assert rebuilt == asked, facts.canonical
    if not any(names(segment) & CARRIERS for segment in facts.segments):  # those are never allowed
        assert set(asked) <= {noted(segment) for segment in facts.segments}
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WRAPPED, COMMAND)
@example(["env", "-u", "X", "nice", "-5", "timeout", "-vk", "1", "5"], ["a b", "$x"])
@example(["stdbuf", "-oL", "nohup", "--", "ionice", "-tc3", "env", "A=1"], ["*", ""])
def test_wrappers(world: BashWorld, wrappers: list[str], arguments: list[str]) -> None:
    compare(world, [*wrappers, "rg", *arguments])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["sh", "bash", "dash"]), st.sampled_from(SCRIPTS), COMMAND)
@example("dash", 'exec "$0" "$@"', ["*", "a b", ""])
@example("bash", '${0} "${2}"', ["-x", "if"])
def test_shells_with_operands(world: BashWorld, shell: str, script: str, arguments: list[str]) -> None:
    compare(world, [shell, "-c", script, "rg", *arguments])


@pytest.mark.parametrize(
    "words",
    [
        ["env", "-u", "X", "A=1", "nice", "-5", "rg", "a b"],
        ["timeout", "-fk", "1", "5", "rg", "*"],
        ["sh", "-c", '$0 "$1"', "rg", "a b"],
        ["bash", "-c", "rg a; cat b | rg c"],
        ["nice", "bash", "-c", 'exec "$0" "$@"', "rg", "$x"],
    ],
)
def test_these_are_surely_looked_through(world: BashWorld, words: list[str]) -> None:
    assert compare(world, words)
