"""The shell that a runner starts for a line: bound as every program is, and deaf to its surroundings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.runners.bubblewrap import BubblewrapRunner
from adapters.runners.host import HostRunner
from core.approvals.binding import bind, find_shell, reverify
from core.errors import BindingMismatch
from core.model.command import Executable
from core.model.decision import Effect
from core.model.plan import RunOrder
from core.shell.render import SHELL, run_argv
from tests.core_system import exec_call
from tests.integration.runners.kit import Place, Recorder, place_on_disk
from tests.shell_world import look

RUNNERS = pytest.mark.parametrize("runner", ["bubblewrap", "host", "unheld"])
LINE = "echo judged; echo as judged"
REAL = str(Path(SHELL).resolve())
OWN = ("/bin/bash", "--noprofile", "--norc", "-p", "-c")


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


class ShellAt(FilesystemResolver):
    """Finds the shell in a file that a test may exchange; with None there is no shell."""

    def __init__(self, shell: Path | None) -> None:
        super().__init__()
        self._shell = shell

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        if name != SHELL:
            return super().find(name, path=path, cwd=cwd)
        return super().find(str(self._shell), path=path, cwd=cwd) if self._shell else None


def own(place: Place, line: str, runner: str, resolver: FilesystemResolver, **options: object) -> RunOrder:
    """Order a line to be run by our own shell."""
    argv = (*OWN, line)
    order = place.order(*argv, runner=runner, **options)
    bound = replace(order.bound, run_by=find_shell(argv, resolver))
    return replace(order, bound=bound, expected=bind(bound))


def over(place: Place, runner: str, resolver: FilesystemResolver) -> BubblewrapRunner | HostRunner:
    kind = BubblewrapRunner if runner == "bubblewrap" else HostRunner
    return kind(resolver, place.output, str(place.root / "workspaces"))


def test_the_lines_of_these_tests_are_run_as_all_others_are() -> None:
    assert run_argv(look(LINE)) == (*OWN, LINE)


@pytest.mark.parametrize(
    ("line", "starts"),
    [("ls -l", False), ("ls -l | wc", True), ("ls >/dev/null", True), ("A=1 ls", True), ("echo $(ls)", True)],
)
async def test_the_shell_is_bound_where_one_is_started(system, line, starts):
    case = system.judge.examine(exec_call(line=line))
    shell = case.bound.run_by
    assert (shell is not None) is starts
    assert ("shell" in dict(case.binding.parts)) is starts
    assert shell is None or shell.real_path == REAL
    reverify(RunOrder("1", run_argv(case.facts), case.bound, case.binding), FilesystemResolver())


async def test_a_line_for_which_there_is_no_shell_is_denied_and_one_program_alone_is_not(make_system):
    system = make_system(resolver=ShellAt(None))
    verdict = system.judge.verdict(system.judge.examine(exec_call(line="ls && ls")))
    assert (verdict.effect, verdict.decision.rule) == (Effect.DENY, "exec.no-shell")
    assert "/bin/bash" in verdict.decision.reason
    alone = system.judge.verdict(system.judge.examine(exec_call(line="ls")))
    assert "exec.no-shell" not in {decision.rule for decision in alone.trace}


@RUNNERS
async def test_a_shell_exchanged_since_the_decision_is_named_and_not_started(place: Place, runner: str):
    shell = place.root / "bash"
    shell.write_text("#!/bin/sh\n# approved\n")
    shell.chmod(0o755)
    resolver = ShellAt(shell)
    order = own(place, LINE, runner, resolver)
    started = over(place, runner, resolver)
    assert (await started.run(order, Recorder())).stdout == "judged\nas judged\n"
    shell.write_text("#!/bin/sh\n# exchanged\n")
    sink = Recorder()
    with pytest.raises(BindingMismatch, match="approval binding mismatch: shell changed"):
        await started.run(order, sink)
    assert sink.heard == []


@RUNNERS
async def test_a_shell_that_was_never_bound_is_not_started(place: Place, runner: str):
    order = place.order(*OWN, LINE, runner=runner)
    with pytest.raises(BindingMismatch, match="shell"):
        await place.runner(runner).run(order, Recorder())


STARTING = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".inputrc", "evil")
ENVIRONMENT = (
    ("BASH_FUNC_echo%%", "() { builtin echo another; }"),
    ("BASH_FUNC_builtin%%", "() { :; }"),
    ("BASH_FUNC_/usr/bin/true%%", "() { echo another; }"),
    ("SHELLOPTS", "braceexpand:hashall:noexec:verbose:xtrace"),
    ("BASHOPTS", "expand_aliases:extdebug"),
    ("PS4", "$(echo another >&2)"),
    ("PROMPT_COMMAND", "echo another"),
    ("CDPATH", "/"),
    ("GLOBIGNORE", "*"),
    ("IFS", "dej"),
    ("BASH_COMPAT", "3.1"),
    ("BASH_ARGV0", "another"),
    ("POSIXLY_CORRECT", "1"),
)


@RUNNERS
async def test_neither_startup_files_nor_the_environment_change_what_the_shell_does(
    place: Place, runner: str
):
    for name in STARTING:
        file = place.workspace / name
        file.write_text("echo another; echo() { builtin echo another; }\n")
        file.chmod(0o644)
    evil = str(place.workspace / "evil")
    told = (*ENVIRONMENT, ("BASH_ENV", evil), ("ENV", evil), ("HISTFILE", evil))
    line = "A='dej'; echo $A; cd usr 2>/dev/null || echo judged; /usr/bin/true; echo *v*"
    for env in (*((each,) for each in told), told):
        order = own(place, line, runner, FilesystemResolver(), env=env)
        result = await over(place, runner, FilesystemResolver()).run(order, Recorder())
        assert (result.stdout, result.stderr) == ("dej\njudged\nevil\n", ""), env


@RUNNERS
async def test_such_an_environment_would_change_what_a_plain_shell_does(place: Place, runner: str):
    evil = place.workspace / "evil"
    evil.write_text("echo another\n")
    order = place.order("/bin/bash", "-c", "echo judged", runner=runner, env=(("BASH_ENV", str(evil)),))
    assert (await place.runner(runner).run(order, Recorder())).stdout == "another\njudged\n"
