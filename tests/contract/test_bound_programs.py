"""Every program of a run is bound and looked at a last time: wrappers, shells, what a project has."""

from __future__ import annotations

import os

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals.binding import reverify
from core.errors import BindingMismatch
from core.model.decision import Effect
from core.model.plan import RunOrder
from core.model.standing import Remembered
from core.shell.render import run_argv
from tests.core_system import CONFIG, exec_call


@pytest.fixture
def system(make_system, tmp_path):
    return make_system({**CONFIG, "agents": {"by_id": {"main": {"workspace": str(tmp_path)}}}})


@pytest.fixture
def installed(tmp_path):
    """Return a program of the project, reached by a link as package managers make them."""
    package = tmp_path / "node_modules" / "fmt" / "cli.js"
    package.parent.mkdir(parents=True)
    package.write_text("#!/bin/sh\necho one\n")
    package.chmod(0o755)
    (tmp_path / "node_modules" / ".bin").mkdir()
    link = tmp_path / "node_modules" / ".bin" / "fmt"
    link.symlink_to("../fmt/cli.js")
    return link


def order_of(case):
    return RunOrder("1", run_argv(case.facts), case.bound, case.binding)


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("nice ls", ["nice", "ls"]),
        ("env A=1 timeout 5 ls", ["env", "timeout", "ls"]),
        ("bash -c 'ls; wc'", ["bash", "ls", "wc"]),
        ("nohup stdbuf -oL bash -c '$0' ls", ["nohup", "stdbuf", "bash", "ls"]),
        ("ls | ionice -c2 ls", ["ls", "ionice"]),
    ],
)
async def test_wrappers_and_shells_are_part_of_the_binding(system, line, programs):
    case = system.judge.examine(exec_call(line=line))
    assert [program.path for program in case.bound.executables] == [f"/usr/bin/{name}" for name in programs]
    reverify(order_of(case), FilesystemResolver())


class Exchanged(FilesystemResolver):
    """The machine after one program became another file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def find(self, name, *, path, cwd):
        return super().find("/usr/bin/true" if name == self._path else name, path=path, cwd=cwd)


@pytest.mark.parametrize("exchanged", ["nice", "timeout", "bash", "ls"])
async def test_a_wrapper_exchanged_before_the_run_is_named(system, exchanged):
    case = system.judge.examine(exec_call(line="nice timeout 5 bash -c ls"))
    with pytest.raises(BindingMismatch, match="executables"):
        reverify(order_of(case), Exchanged(f"/usr/bin/{exchanged}"))


async def test_a_program_of_the_project_is_what_runs_and_is_bound(system, installed):
    case, verdict = await system.gate.consider(exec_call(line="npx fmt --write"))
    assert verdict.effect is Effect.ASK
    assert case.bound.canonical == f"{installed} --write"
    assert [program.real_path for program in case.bound.executables] == [str(installed.resolve())]
    reverify(order_of(case), FilesystemResolver())
    installed.resolve().write_text("#!/bin/sh\necho two\n")
    with pytest.raises(BindingMismatch, match="executables"):
        reverify(order_of(case), FilesystemResolver())


async def test_a_link_of_the_project_that_leads_elsewhere_is_noticed(system, installed):
    case = system.judge.examine(exec_call(line="npx fmt"))
    installed.unlink()
    installed.symlink_to("/usr/bin/true")
    with pytest.raises(BindingMismatch, match="executables"):
        reverify(order_of(case), FilesystemResolver())


async def test_what_always_left_for_it_ends_with_its_text(system, installed):
    call = exec_call(line="npx fmt")
    case, verdict = await system.gate.consider(call)
    remembered = Remembered(verdict.always.entries)
    assert "as long as the file stays as it is" in verdict.always.words[0]
    assert system.judge.verdict(case, remembered).effect is Effect.ALLOW
    installed.resolve().write_text("#!/bin/sh\necho two\n")
    assert system.judge.verdict(system.judge.examine(call), remembered).effect is Effect.ASK


async def test_a_runner_that_would_download_asks_and_is_never_remembered(system):
    for line in ("npx fmt", "npm exec -- fmt", "pnpm dlx fmt"):
        _, verdict = await system.gate.consider(exec_call(line=line))
        assert verdict.always.entries == ()
        assert verdict.effect is not Effect.ALLOW


@pytest.mark.skipif(not os.path.islink("/bin"), reason="/bin is no link here")  # noqa: PTH114 - not its target
@pytest.mark.parametrize(
    ("pattern", "effect"), [("/bin/ls", "allow"), ("/bin/l?", "allow"), ("/sbin/ls", "deny")]
)
async def test_a_pattern_by_the_link_of_a_merged_system_counts(make_system, pattern, effect):
    exec_settings = {"security": "allowlist", "ask": "off", "allowlist": [{"pattern": pattern}]}
    system = make_system({"tools": {"profile": "coding", "exec": exec_settings}})
    for line in ("ls", "/bin/ls", "/usr/bin/ls"):
        case = system.judge.examine(exec_call(line=line))
        assert str(system.judge.verdict(case).effect) == effect
