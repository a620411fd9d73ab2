"""On the host, Sayso's own state is out of reach by every way that leads to it, links included."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from core.config import Config
from core.execsec.decide import decide
from core.execsec.policy import effective
from core.execsec.real_paths import MAX_PATHS, with_own_state
from core.judge import Judge, Site
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.decision import Effect
from core.model.session import SessionKey
from core.shell.inspect import inspect
from tests.shell_world import Machine


@pytest.fixture
def work(tmp_path: Path) -> Path:
    state = tmp_path / "st" / "state"
    state.mkdir(parents=True)
    (state / "token").write_text("secret")
    work = tmp_path / "ws"
    (work / "sub").mkdir(parents=True)
    (work / "notes").write_text("n")
    (work / "lnkstate").symlink_to(state)
    (work / "lnktoken").symlink_to("../st/state/token")
    (work / "twice").symlink_to("lnkstate")
    (work / "here").symlink_to("/proc/self/cwd")
    (work / "sub" / "up").symlink_to("../../st/state")
    (work / "lnksub").symlink_to(tmp_path / "st" / "beside" / "deep")
    (tmp_path / "st" / "beside" / "deep").mkdir(parents=True)
    (work / "lnknotes").symlink_to("notes")
    (tmp_path / "alias").symlink_to(tmp_path / "st")
    return work


def judged(line: str, cwd: Path, state: Path, placement: Placement = Placement.HOST) -> str:
    resolver = Machine()
    config = Config.model_validate({"tools": {"exec": {"security": "allowlist", "ask": "off"}}})
    policy = effective(config, "main", placement, home="/root", protected_paths=(str(state),))
    facts = inspect(CommandText(line=line), cwd=str(cwd), path=("/usr/bin",), resolver=resolver)
    facts = with_own_state(facts, resolver, policy, placement)
    cat = AllowlistEntry("/usr/bin/cat", source="test", placement=placement)
    decision = decide(facts, policy, (cat,), placement, env=(), seen_before=False).decision
    return decision.rule if decision.rule != "exec.allowlist" else str(decision.effect)


REACHES = [
    "cat lnkstate/token", "cat lnktoken", "cat twice/token", "cat sub/up/token", "cat -n lnktoken",
    "cat --file=lnktoken", "cat -flnktoken", "cat notes lnktoken", "cat lnksub/../../state/token",
    "cat a:lnktoken", "nice cat lnktoken", "sh -c 'cat lnktoken'", "cat here/lnktoken", "cat here/../x",
    "cat /proc/self/cwd/notes", "cat /dev/fd/../cwd/notes", "cat /proc/self/root/etc/passwd",
    "cat /proc/thread-self/cwd/x", "cat /proc/self/fd/../cwd/x", "cat /proc/self/task/1/cwd/x",
    "cat /proc/1/root/x", "cat /proc/./self//cwd/x", "A=lnktoken cat x",
]  # fmt: skip


@pytest.mark.parametrize("line", REACHES)
def test_a_word_that_leads_to_the_state_by_a_link_is_denied(line: str, work: Path) -> None:
    assert judged(line, work, work.parent / "st" / "state") == "exec.deny-own-state"


def test_where_the_command_runs_counts_for_links_too(work: Path) -> None:
    state = work.parent / "st" / "state"
    assert judged("cat /proc/self/cwd/state/token", state.parent, state) == "exec.deny-own-state"
    assert judged("cd sub && cat up/token", work, state) == "exec.deny-own-state"
    assert judged("cd sub; cat up/token", work, state) == "exec.deny-own-state"


def test_a_state_directory_that_is_named_by_a_link_is_found_behind_another(work: Path) -> None:
    assert judged("cat lnktoken", work, work.parent / "alias" / "state") == "exec.deny-own-state"


NEAR = [
    "cat lnknotes", "cat notes", "cat lnksub", "cat lnkstatex/token", "cat /dev/stdin", "cat /dev/fd/0",
    "cat /proc/self/status", "cat /proc/mounts", "cat /proc/self/fd/0", "cat notes/x/y", "cat " + "a" * 300,
    "cat a/" + "b" * 5000, "cat 'x y'", "cat /etc/passwd", "cat s=/a,b:c@d", "cat lnknotes/../st",
]  # fmt: skip


@pytest.mark.parametrize("line", NEAR)
def test_what_leads_elsewhere_is_judged_by_the_list(line: str, work: Path) -> None:
    assert judged(line, work, work.parent / "st" / "state") == "allow"


@pytest.mark.parametrize(
    ("placement", "expected"),
    [(Placement.CLIENT, "exec.deny-own-state"), (Placement.SANDBOX, "allow")],
)
def test_links_are_followed_where_no_sandbox_hides_the_state(
    placement: Placement, expected: str, work: Path
) -> None:
    assert judged("cat lnktoken", work, work.parent / "st" / "state", placement) == expected


def test_more_paths_than_are_looked_at_are_denied(work: Path) -> None:
    state = work.parent / "st" / "state"
    few = "cat " + " ".join(f"f{number}" for number in range(500))
    many = "cat " + ":".join(f"f{number}" for number in range(MAX_PATHS + 1))
    assert judged(few, work, state) == "allow"
    assert judged(many, work, state) == "exec.deny-own-state"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat lnktoken", "exec.deny-own-state"),
        ("cat /proc/self/cwd/st/state/token", "exec.deny-own-state"),
        ("cat lnknotes", "allow"),
    ],
)
def test_the_policy_decision_point_follows_links_on_the_host(line: str, expected: str, work: Path) -> None:
    config = Config.model_validate(
        {
            "sandboxing": {"mode": "off"},
            "tools": {"profile": "full", "exec": {"security": "full", "ask": "off"}},
        }
    )
    state = work.parent / "st" / "state"
    site = Site(str(state), str(work), ("/nonesuch",), "/root")
    judge = Judge(config, site, FilesystemResolver(), SystemNameResolver())
    command = CommandText(line=line, cwd=str(work))
    call = ToolCall("exec", SessionKey.main("main"), command=command)
    decision = judge.verdict(judge.examine(call)).decision
    assert (decision.rule if decision.effect == Effect.DENY else str(decision.effect)) == expected


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (
            "loop1",
            "where {work}/loop1 leads cannot be told by its links, and Sayso's own state may lie there",
        ),
        (
            "/proc/1/environ",
            "/proc/1/environ is what a process keeps to itself, Sayso's own perhaps, which no",
        ),
        (
            "lnktoken",
            "the command touches Sayso's own state or configuration ({state}), which no command may",
        ),
    ],
)
def test_why_the_state_may_be_touched_is_said_as_it_is(word: str, told: str, work: Path) -> None:
    (work / "loop1").symlink_to("loop2")
    (work / "loop2").symlink_to("loop1")
    state = work.parent / "st" / "state"
    policy = effective(Config(), "main", Placement.HOST, home="/root", protected_paths=(str(state),))
    facts = inspect(CommandText(line=f"cat {word}"), cwd=str(work), path=("/usr/bin",), resolver=Machine())
    facts = with_own_state(facts, Machine(), policy, Placement.HOST)
    decision = decide(facts, policy, (), Placement.HOST, env=(), seen_before=False).decision
    assert (str(decision.effect), decision.rule) == ("deny", "exec.deny-own-state")
    assert decision.reason.startswith(told.format(work=work, state=state))
