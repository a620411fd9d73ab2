"""Which entries admit what; for each admission a near miss."""

from __future__ import annotations

import pytest
from msgspec import structs

from core.execsec.allowlist import path_matches
from core.model.allowlist import AllowlistEntry
from core.model.command import Directory, Placement
from tests.shell_world import World, effect, judge, look

SRV = Directory("/srv", 1, 1)
RUN_SH = AllowlistEntry("/srv/run.sh", (), real_path="/srv/run.sh", agent="main", directory=SRV)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/usr/bin/rg", "/usr/bin/rg", True),
        ("/usr/bin/rg", "/usr/bin/rgx", False),
        ("/usr/bin/RG", "/usr/bin/rg", False),
        ("/usr/bin/*", "/usr/bin/rg", True),
        ("/usr/bin/*", "/usr/bin/x/rg", False),
        ("/usr/*", "/usr/bin/rg", False),
        ("/usr/**", "/usr/bin/rg", True),
        ("/usr/**/rg", "/usr/a/b/rg", True),
        ("/usr/bin/r?", "/usr/bin/rg", True),
        ("/usr/bin?rg", "/usr/bin/rg", False),
        ("/usr/bin/r.", "/usr/bin/rg", False),
        ("/usr/bin/[r]g", "/usr/bin/rg", False),
        ("**", "/any/thing", True),
    ],
)
def test_path_globs(pattern: str, path: str, matches: bool) -> None:  # noqa: FBT001 - a parametrised expectation
    assert path_matches(pattern, path) is matches


@pytest.mark.parametrize("pattern", ["/usr/bin/rg", "/usr/bin/*", "/usr/**", "**", "rg", "r*"])
def test_a_trusted_program_is_admitted_by_path_glob_or_bare_name(pattern: str) -> None:
    assert effect("rg x", pattern, ask="off") == "allow"


@pytest.mark.parametrize("pattern", ["/usr/bin/ls", "/usr/*", "/bin/*", "ls", "RG", "g", "", "rg x"])
def test_near_misses_of_a_path_are_refused(pattern: str) -> None:
    assert effect("rg x", pattern, ask="off") == "deny"


@pytest.mark.parametrize("pattern", ["rg", "*", "**", "/srv/**", "/srv/tools/*"])
def test_a_program_that_others_could_change_is_never_admitted_by_name_or_glob(pattern: str) -> None:
    assert effect("./tools/rg x", pattern, ask="off") == "deny"
    assert effect("./tools/rg x", "/srv/tools/rg", ask="off") == "allow"


def test_a_bare_name_counts_only_in_trusted_directories() -> None:
    assert effect("rg x", "rg", ask="off", safeBinTrustedDirs=["/opt/bin"]) == "deny"
    assert effect("/usr/bin/rg x", "rg", ask="off") == "deny"


def test_an_operators_entry_matches_the_real_path_or_the_link_it_names() -> None:
    world = World(links={"/usr/bin/view-it": "/usr/bin/rg"})
    facts = look("view-it x", world=world)
    assert effect(facts, "/usr/bin/rg", ask="off") == "allow"
    assert effect(facts, "/usr/bin/view-it", ask="off") == "allow"
    assert effect(facts, "/usr/bin/view*", ask="off") == "deny"


def test_a_learned_entry_needs_the_same_name_and_the_same_file_behind_it() -> None:
    entry = AllowlistEntry("/usr/bin/xzcat", ("x",), real_path="/usr/bin/xz", agent="main", directory=SRV)
    same, moved = (
        World(links={"/usr/bin/xzcat": "/usr/bin/xz"}),
        World(links={"/usr/bin/xzcat": "/usr/bin/cat"}),
    )
    assert effect(look("xzcat x", world=same), entry, ask="off") == "allow"
    assert effect(look("xzcat x", world=moved), entry, ask="off") == "deny"
    assert effect(look("xz x", world=same), entry, ask="off") == "deny"


def test_a_multi_call_program_is_another_entry_under_each_name() -> None:
    world = World(links={"/usr/bin/ls": "/usr/bin/busybox", "/usr/bin/rm": "/usr/bin/busybox"})
    entry = AllowlistEntry("/usr/bin/ls", ("x",), real_path="/usr/bin/busybox", agent="main")
    for known in (entry, structs.replace(entry, args=None, any_arguments=True)):
        assert effect(look("ls x", world=world), known, ask="off") == "allow"
        assert effect(look("rm x", world=world), known, ask="off") == "deny"


def test_a_pin_holds_the_content() -> None:
    entry = structs.replace(RUN_SH, sha256="a" * 64)
    assert effect("./run.sh", entry, ask="off") == "allow"
    assert effect("./run.sh -c x", entry, ask="off") == "deny"
    assert effect("./run.sh", structs.replace(entry, args=None), ask="off") == "deny"
    assert effect("./run.sh", structs.replace(entry, args=None, any_arguments=True), ask="off") == "deny"
    assert effect("./run.sh", structs.replace(entry, sha256="b" * 64), ask="off") == "deny"
    assert effect("./run.sh", structs.replace(entry, sha256=None), ask="off") == "deny"


def test_a_program_that_another_command_of_the_line_could_replace_asks() -> None:
    entry = structs.replace(RUN_SH, sha256="a" * 64)
    assert judge("cp x run.sh; ./run.sh", entry, "**").decision.rule == "exec.changeable"
    assert effect("cp x run.sh | ./run.sh", entry, "**", ask="off") == "deny"
    assert effect("cd /srv && ./run.sh; echo done", entry, ask="off") == "allow"


def test_placement_and_agent_must_be_the_same() -> None:
    sandbox = AllowlistEntry("/usr/bin/rg", source="test")
    host = AllowlistEntry("/usr/bin/rg", placement=Placement.HOST, source="test")
    assert effect("rg x", sandbox, placement=Placement.HOST, ask="off") == "deny"
    assert effect("rg x", host, ask="off") == "deny"
    assert effect("rg x", host, placement=Placement.HOST, ask="off") == "allow"
    assert effect("rg x", structs.replace(sandbox, agent="other"), ask="off") == "deny"
    assert effect("rg x", structs.replace(sandbox, agent="main"), ask="off") == "allow"


# The place of an entry, and one in which a command would run that it admits.
COUNTS = {
    (Placement.SANDBOX, Placement.SANDBOX),
    (Placement.HOST, Placement.HOST),
    (Placement.HOST, Placement.CLIENT),
    (Placement.CLIENT, Placement.CLIENT),
}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("place", Placement)
@pytest.mark.parametrize("of_entry", Placement)
def test_in_which_places_an_entry_counts(of_entry: Placement, place: Placement, *, learned: bool) -> None:
    real_path = "/usr/bin/rg" if learned else None
    entry = AllowlistEntry(
        "/usr/bin/rg",
        ("x",) if learned else None,
        placement=of_entry,
        real_path=real_path,
        directory=SRV if learned else None,
        source="test",
    )
    expected = "allow" if (of_entry, place) in COUNTS else "deny"
    assert effect("rg x", entry, placement=place, ask="off") == expected


@pytest.mark.parametrize(
    "line", ["git status", "python3 x.py", "make", "awk 1 x", "sed p x", "tar cf a b", "vim x"]
)
@pytest.mark.parametrize("pattern", ["**", "git", "/usr/bin/*"])
def test_programs_that_run_anything_are_not_admitted_by_path(line: str, pattern: str) -> None:
    assert effect(line, pattern, ask="off") == "deny"


def test_exact_arguments_admit_exactly_them() -> None:
    entry = AllowlistEntry("/usr/bin/git", args=("push", "origin", "a b"), source="test")
    assert effect("git push origin 'a b'", entry, ask="off") == "allow"
    for line in (
        "git push origin a b",
        "git push origin",
        "git push origin 'a b' x",
        "git -c x push origin 'a b'",
    ):
        assert effect(line, entry, ask="off") == "deny", line


def test_an_argument_pattern_must_match_the_whole_canonical_string() -> None:
    entry = AllowlistEntry("/usr/bin/git", arg_pattern="log( --oneline)?|show [0-9a-f]+", source="test")
    for line in ("git log", "git log --oneline", "git show abc"):
        assert effect(line, entry, ask="off") == "allow", line
    for line in ("git log -p", "git show", "git show xyz", "git 'log --oneline'", "git log; git push", "git"):
        assert effect(line, entry, ask="off") == "deny", line


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "a{9999}"])
def test_an_argument_pattern_that_cannot_be_read_admits_nothing(pattern: str) -> None:
    assert (
        effect("git log", AllowlistEntry("/usr/bin/git", arg_pattern=pattern, source="test"), ask="off")
        == "deny"
    )


def test_inline_code_needs_exact_arguments() -> None:
    pattern = AllowlistEntry("/usr/bin/python3", arg_pattern=".*", source="test")
    exact = AllowlistEntry("/usr/bin/python3", args=("-c", "x"), source="test")
    assert effect("python3 -c x", pattern, ask="off") == "deny"
    assert effect("python3 x.py", pattern, ask="off") == "allow"
    assert effect("python3 -c x", exact, ask="off") == "allow"


@pytest.mark.parametrize("line", ["rg $X", "rg *", "rg ~", "rg {a,b}", 'rg "$X"', "rg a=~/x"])
def test_words_that_are_not_literal_are_never_admitted(line: str) -> None:
    judgement = judge(line, "**")
    assert judgement.decision.rule == "exec.not-literal"
    assert effect(line, "**", ask="off") == "deny"
