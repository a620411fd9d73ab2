"""A path joined to a cluster of short options is a path, wherever in the cluster it begins."""

from __future__ import annotations

import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.resolvers.filesystem import FilesystemResolver
from core.execsec.decide import decide
from core.execsec.path_pieces import path_pieces
from core.execsec.policy import ExecPolicy
from core.execsec.real_paths import with_own_state
from core.model.command import Placement
from tests.shell_world import HOME, judge, look, policy

CLIMBING = [
    "sort -uo../.sayso/config.yaml y", "cp -ft../.sayso ev.yaml", "mv -ft../.sayso x",
    "ln -sft../.sayso x", "csplit -sf../.sayso/x", "shuf -no../.sayso/x", "grep -if../.sayso/token x",
    "jq -nf../.sayso/x", "ls -n1o../.sayso/x", "cc -Wl,-o../.sayso/x", "rg --x=-uo../.sayso/x",
    "sort -" + "u" * 300 + "o../.sayso/x", "curl -#o../.sayso/x", "sort -uo/home/agent/.sayso/x y",
    "sort -uo$HOME/.sayso/x y",
]  # fmt: skip
NAMED = ["sort -uo.sayso/token", "cp -ft.sayso x", "sort -" + "u" * 300 + "o.sayso/token"]
NEAR = [
    "sort -uo../.saysox/token", "sort -uo.sayso/token", "sort -uo../sayso/token", "cp -ft../sub x",
    "ls -la", "ls -la/../sayso", "sort --uo../.saysox", "jq -n .sayso/x",
]  # fmt: skip


def rule(line: str, cwd: str) -> str:
    return judge(look(line, cwd=cwd), "*", "/usr/bin/*").decision.rule


@pytest.mark.parametrize("line", CLIMBING)
def test_a_relative_path_in_a_cluster_of_options_is_denied(line: str) -> None:
    assert rule(line, f"{HOME}/ws") == "exec.deny-own-state"


@pytest.mark.parametrize("line", NAMED)
def test_a_path_that_does_not_climb_is_found_from_above_the_state(line: str) -> None:
    assert rule(line, HOME) == "exec.deny-own-state"
    assert rule(line, f"{HOME}/ws") != "exec.deny-own-state"


@pytest.mark.parametrize("line", NEAR)
def test_options_that_lead_elsewhere_are_not_denied(line: str) -> None:
    assert rule(line, f"{HOME}/ws") != "exec.deny-own-state"


def letters_before(line: str, protected: str, cwd: str) -> str:
    under = ExecPolicy("main", policy().security, home=HOME, protected_paths=(protected,))
    return judge(look(line, cwd=cwd), under=under).decision.rule


@pytest.mark.parametrize("line", ["sort -uostate/token y", "sort -ostate/token y", "sort -9uo0state/token y"])
def test_a_path_that_begins_with_a_letter_is_found_in_a_cluster(line: str) -> None:
    name = "0state" if "0state" in line else "state"
    assert letters_before(line, f"/srv/{name}", "/srv") == "exec.deny-own-state"
    assert letters_before(line, "/srv/tate2", "/srv") != "exec.deny-own-state"


@pytest.mark.parametrize(
    ("line", "reached"),
    [
        ("sort -uolnk/token y", "state"),
        ("grep -iflnk/token y", "state"),
        ("ls -n1flnk", "state"),
        ("sort -uoother/token y", None),
        ("sort -uo-lnk/token y", None),
        ("sort --uolnk/token y", None),
    ],
)
def test_a_link_behind_a_cluster_of_options_is_followed(
    line: str, reached: str | None, tmp_path: Path
) -> None:
    state, work = tmp_path / "state", tmp_path / "ws"
    state.mkdir()
    work.mkdir()
    (work / "lnk").symlink_to(state)
    facts = look(line, cwd=str(work))
    under = ExecPolicy("main", policy().security, protected_paths=(str(state),))
    found = with_own_state(facts, FilesystemResolver(), under, Placement.HOST).segments[0].leads_to
    assert found == (reached and str(tmp_path / reached))


@given(
    st.text(string.ascii_letters + string.digits, min_size=1, max_size=300),
    st.sampled_from("._/") | st.none(),
)
def test_every_part_behind_a_letter_is_a_piece(cluster: str, follows: str | None) -> None:
    rest = f"{follows}x/y" if follows else ""
    pieces = path_pieces(f"-{cluster}{rest}")
    every = {cluster[at:] + rest for at in range(max(1, len(cluster) - 255), len(cluster) + 1)}
    assert every <= set(pieces)
    assert len(pieces) <= 260


def test_a_long_word_is_taken_apart_in_few_pieces() -> None:
    assert len(path_pieces("-" + "a" * 65_000)) <= 260
    assert path_pieces("a" * 65_000) == ["a" * 65_000]
    assert path_pieces("--output=x/y") == ["--output=x/y", "--output", "x/y"]


def test_more_than_can_be_followed_in_time_is_denied(tmp_path: Path) -> None:
    under = ExecPolicy("main", policy().security, protected_paths=(str(tmp_path / "state"),))
    for parts, effect in ((10, "ask"), (1800, "deny")):
        line = "rg " + " ".join(f"-{'abcde' * 40}{number:02}/{'a/' * parts}" for number in range(10))
        began = time.thread_time()
        facts = with_own_state(look(line, cwd="/srv"), FilesystemResolver(), under, Placement.HOST)
        assert time.thread_time() - began < 10
        assert (facts.segments[0].leads_to is None) is (effect == "ask")
        found = decide(facts, under, (), Placement.HOST, env=(), seen_before=False).decision
        assert str(found.effect) == effect
        assert ("leads cannot be told" in found.reason) is (effect == "deny")


@pytest.mark.parametrize("behind", ["/" * 60_000, "/x" * 30_000, "//x" * 20_000, "/./" * 20_000])
def test_a_word_longer_than_any_path_behind_many_letters_is_little_work(behind: str, tmp_path: Path) -> None:
    under = ExecPolicy("main", policy().security, home=HOME, protected_paths=(str(tmp_path / "own"),))
    facts = look(f"cat -{'a' * 254}{behind}", cwd=str(tmp_path))
    begun = time.thread_time()
    facts = with_own_state(facts, FilesystemResolver(), under, Placement.HOST)
    decide(facts, under, (), Placement.HOST, env=(), seen_before=False)
    assert time.thread_time() - begun < 0.3  # it was up to four seconds


def test_slashes_do_not_make_a_path_too_long_to_be_seen() -> None:
    assert rule(f"sort -uo..{'/' * 60_000}.sayso/x", f"{HOME}/ws") == "exec.deny-own-state"
    assert rule(f"cat ..{'/./' * 20_000}.sayso/x", f"{HOME}/ws") == "exec.deny-own-state"
    assert rule(f"sort -uo..{'/' * 60_000}.saysox/x", f"{HOME}/ws") != "exec.deny-own-state"
