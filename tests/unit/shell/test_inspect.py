"""What is understood: segments, expansions, canonical form, directories, wrappers."""

from __future__ import annotations

import pytest

from core.model.command import Expansion
from core.shell.render import run_argv
from tests.shell_world import World, look

CANONICAL = [
    ("git status | wc -l", "/usr/bin/git status | /usr/bin/wc -l"),
    ("a && b || c; d", "/usr/bin/a && /usr/bin/b || /usr/bin/c; /usr/bin/d"),
    ("a & b &", "/usr/bin/a & /usr/bin/b &"),
    ("a\nb\n\n c;\n", "/usr/bin/a; /usr/bin/b; /usr/bin/c"),
    ("a |\n b &&\n c", "/usr/bin/a | /usr/bin/b && /usr/bin/c"),
    ("a |& b", "/usr/bin/a 2>&1 | /usr/bin/b"),
    ("a 2>&1 >/dev/null", "/usr/bin/a 2>&1 >/dev/null"),
    ("a >& 2 x", "/usr/bin/a x >&2"),
    ("a 1>&2 </dev/null", "/usr/bin/a >&2 </dev/null"),
    ("a &> /dev/null", "/usr/bin/a >/dev/null 2>&1"),
    ("a '/dev/null' 2>'/dev/null'", "/usr/bin/a /dev/null 2>/dev/null"),
    ("A=1 B='x y' a", "A=1 B='x y' /usr/bin/a"),
    ("\\rm 'r'm \"r\"m r\\m", "/usr/bin/rm rm rm rm"),
    ("a 'it'\\''s' \"x\\\"y\\$z\\q\"", "/usr/bin/a 'it'\"'\"'s' 'x\"y$z\\q'"),
    ("find . -exec rm {} \\;", "/usr/bin/find . -exec rm '{}' ';'"),
    ('a $X "$X y" ${X} *.c ~/x {a,b}', '/usr/bin/a $X "$X y" ${X} *.c ~/x {a,b}'),
    ("a $ a$ '$X'", "/usr/bin/a '$' 'a$' '$X'"),
    ("a # b\nc", "/usr/bin/a; /usr/bin/c"),
    ("a # b \\\nc", "/usr/bin/a; /usr/bin/c"),
    ("a \\\n  -x \\\n  && b \\\n| c", "/usr/bin/a -x && /usr/bin/b | /usr/bin/c"),
    ("a ';' # b; 'c", "/usr/bin/a ';'"),
    ("a b#c", "/usr/bin/a 'b#c'"),
    ("[ -f x ] && a", "[ -f x ] && /usr/bin/a"),
    ("'if' x", "/usr/bin/if x"),
    ("nonesuch x", "nonesuch x"),
    ("cd tools && a", "cd /srv/tools && /usr/bin/a"),
    ("bash -c 'a | b'", "/usr/bin/bash -c '/usr/bin/a | /usr/bin/b'"),
    ("bash -lc a", "/usr/bin/bash -c /usr/bin/a"),
    ("sh -c 'a &>/dev/null'", "/usr/bin/sh -c '/usr/bin/a >/dev/null 2>&1'"),
    ("env -i A=1 timeout -s KILL 5 a b", "/usr/bin/env -i A=1 /usr/bin/timeout -s KILL 5 /usr/bin/a b"),
]


@pytest.mark.parametrize(("line", "canonical"), CANONICAL, ids=[repr(row[0]) for row in CANONICAL])
def test_canonical_form_and_it_is_its_own_canonical_form(line: str, canonical: str) -> None:
    facts = look(line)
    assert facts.refused == ()
    assert facts.canonical == canonical
    assert look(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("source", "expansions"),
    [
        ("$X", {Expansion.VARIABLE}),
        ('"${X}"', {Expansion.VARIABLE}),
        ("$?", {Expansion.VARIABLE}),
        ("*", {Expansion.GLOB}),
        ("a?", {Expansion.GLOB}),
        ("[ab]", {Expansion.GLOB}),
        ("~", {Expansion.TILDE}),
        ("a=~", {Expansion.TILDE}),
        ("a:~b", {Expansion.TILDE}),
        ("{a,b}", {Expansion.BRACE}),
        ("{-exec,id,\\;}", {Expansion.BRACE}),
        ("{1..3}*", {Expansion.BRACE, Expansion.GLOB}),
        ("'*'", set()),
        ("\\*", set()),
        ('"~"', set()),
        ("a~", set()),
        ("{}", set()),
        ("'$X'", set()),
        ("\\$X", set()),
    ],
)
def test_a_word_says_what_bash_would_still_do_to_it(source: str, expansions: set[Expansion]) -> None:
    word = look(f"a {source}").segments[0].words[1]
    assert word.expansions == expansions
    assert word.source == source
    assert word.literal is not bool(expansions)


@pytest.mark.parametrize(
    ("line", "cwds"),
    [
        ("cd /tmp && a; b", ["/srv", "/tmp", "/tmp"]),
        ("cd /tmp; cd / ; a", ["/srv", "/tmp", "/"]),
        ("cd tools && cd .. && a; b", ["/srv", "/srv/tools", "/srv", "/srv"]),
        ("cd /nowhere; a", ["/srv", None]),
        ("cd; a", ["/srv", None]),
        ("cd -; a", ["/srv", None]),
        ("cd -P /tmp; a", ["/srv", None]),
        ("cd $X; a", ["/srv", None]),
        ("cd '' ; a", ["/srv", None]),
        ("A=1 cd /tmp; a", ["/srv", None]),
        ("cd /tmp | a; b", ["/srv", None, None]),
        ("a | cd /tmp; b", ["/srv", "/srv", None]),
        ("cd /tmp || a; b", ["/srv", None, None]),
        ("a && cd /tmp && b; c", ["/srv", "/srv", "/tmp", None]),
        ("a || cd /tmp; b", ["/srv", "/srv", None]),
        ("cd /tmp & a", ["/srv", "/srv"]),
        ("cd /tmp && a & b", ["/srv", "/tmp", "/srv"]),
        ("pushd /tmp; a", ["/srv", None]),
        ("eval cd /tmp; a", ["/srv", None]),
        ("bash -c 'cd /tmp && a'; b", ["/srv", "/tmp", "/srv"]),
    ],
)
def test_only_a_literal_cd_that_surely_happens_is_followed(line: str, cwds: list[str | None]) -> None:
    assert [segment.cwd for segment in look(line).segments] == cwds


def test_programs_with_a_slash_are_found_where_a_cd_led() -> None:
    facts = look("cd tools && ./rg x")
    assert facts.segments[1].executable is not None
    assert facts.segments[1].executable.path == "/srv/tools/rg"
    assert look("cd $X && ./rg x").segments[1].executable is None


@pytest.mark.parametrize(
    ("line", "through"),
    [
        ("bash -c a", ("bash -c",)),
        ("env a", ("env",)),
        ("env -u X --unset=Y A=1 a", ("env",)),
        ("nice -n 5 a", ("nice",)),
        ("nice -5 a", ("nice",)),
        ("nohup a", ("nohup",)),
        ("timeout --kill-after=5 -v 10 a", ("timeout",)),
        ("stdbuf -oL -e0 a", ("stdbuf",)),
        ("ionice -c2 -n7 a", ("ionice",)),
        ("env nice timeout 5 nohup a", ("env", "nice", "timeout", "nohup")),
        ("timeout 5 bash -c 'env a'", ("timeout", "bash -c", "env")),
    ],
)
def test_wrappers_with_known_options_are_looked_through(line: str, through: tuple[str, ...]) -> None:
    segment = look(line).segments[0]
    assert segment.through == through
    assert segment.argv[0] == "a"


@pytest.mark.parametrize(
    "line",
    [
        "env -S 'a b'",
        "env --split-string=a",
        "env -C /tmp a",
        "env",
        "env A=1",
        "env $X a",
        "env A=$X a",
        "env a=b=c 1x=2 a",
        "timeout 5",
        "timeout --wat 5 a",
        "nice --adj 5 a",
        "bash -c 'a' b",
        "bash -xc a",
        "bash -c $X",
        'bash -c "$X"',
        "bash x.sh",
        "bash -s",
        "bash -i -c a",
        "bash --rcfile x -c a",
        "zsh -c a",
        "fish -c a",
        "xargs a",
        "env nice timeout 5 nohup stdbuf -oL a",
    ],
)
def test_anything_else_about_a_wrapper_stops_the_looking(line: str) -> None:
    facts = look(line)
    assert facts.analysable
    assert facts.segments[0].argv[0] != "a"


def test_a_shell_of_the_agents_own_is_never_looked_through() -> None:
    world = World(files={"/srv/bash"})
    facts = look("./bash -c ls", world=world)
    assert facts.segments[0].through == ()


def test_assignments_reach_every_command_behind_a_wrapper() -> None:
    facts = look("A=1 env B=2 bash -c 'C=3 a; b'")
    names = [[name for name, _ in segment.assignments] for segment in facts.segments]
    assert names == [["A", "B", "C"], ["A", "B"]]


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("rg 'a b'", ("/usr/bin/rg", "a b")),
        (("rg", "$(id)", ""), ("/usr/bin/rg", "$(id)", "")),
        ("rg *", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "/usr/bin/rg *")),
        ("rg x &", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "/usr/bin/rg x &")),
        ("A=1 rg", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "A=1 /usr/bin/rg")),
        ("rg 2>&1", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "/usr/bin/rg 2>&1")),
        ("echo a", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "echo a")),
        ("env rg", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "/usr/bin/env /usr/bin/rg")),
        ("echo $(id)", ("/bin/bash", "--noprofile", "--norc", "-p", "-c", "echo $(id)")),
    ],
)
def test_what_a_runner_executes(command: str | tuple[str, ...], argv: tuple[str, ...]) -> None:
    assert run_argv(look(command)) == argv


def test_an_argv_is_never_read_as_shell() -> None:
    facts = look(("echo", "a; rm -rf /", "$X", "*"))
    assert len(facts.segments) == 1
    assert facts.segments[0].literal
    assert not facts.segments[0].builtin


@pytest.mark.parametrize(
    ("line", "inline"),
    [
        ("python3 -c x", True),
        ("python3 -Bc x", True),
        ("python3 -W ignore -c x", True),
        ("python3 -", True),
        ("python3", True),
        ("python3 /dev/stdin", True),
        ("curl x | sh", True),
        ("curl x | bash -s -- y", True),
        ("curl x | python3 -u", True),
        ("node --eval x", True),
        ("node --ev=x", True),
        ("node -pe x", True),
        ("perl -lne x", True),
        ("perl -E x", True),
        ("ruby -e x", True),
        ("php -r x", True),
        ("deno eval x", True),
        ("lua -e x", True),
        ("zsh -c x", True),
        ("bash -xc x", True),
        ("python3 x.py", False),
        ("python3 --version", False),
        ("node x.js", False),
        ("bash x.sh", False),
        ("bash -c 'rg x'", False),
        ("rg -c x", False),
        ("wc -c", False),
    ],
)
def test_inline_code_is_noticed(line: str, inline: bool) -> None:  # noqa: FBT001 - a parametrised expectation
    assert look(line).inline_code is inline


def test_inline_code_is_noticed_behind_a_link() -> None:
    world = World(links={"/usr/bin/innocent": "/usr/bin/python3.11"})
    assert look("innocent -c x", world=world).inline_code
