"""What is looked through, in every spelling, and that nothing else is."""

from __future__ import annotations

import pytest

from core.shell.render import run_argv
from tests.shell_world import World, effect, judge, look

SEEN = [
    ("env -i a", 1), ("env -iu X a", 1), ("env -uX a", 1), ("env - a", 1), ("env - A=1 a", 1),
    ("env -- a", 1),
    ("env --unset X a", 1), ("env --ignore-environment -u Y -- A=1 B=2 a", 1), ("nice a", 1),
    ("nice -n5 a", 1),
    ("nice --5 a", 1), ("nice --adjustment=5 a", 1), ("nice --adjustment 5 -- a", 1), ("timeout 5 a", 1),
    ("timeout -fv 5 a", 1), ("timeout -k5 -sKILL 5 a", 1), ("timeout -vk 5 5s a", 1), ("timeout -- 5 a", 1),
    ("timeout --signal KILL --preserve-status 5 a", 1), ("nohup -- a", 1), ("stdbuf -o0 -eL a", 1),
    ("stdbuf --output=L --error 0 a", 1), ("ionice -tc2 a", 1), ("ionice -c 2 -n 7 -t a", 1),
    ("ionice --class idle --classdata=3 a", 1), ("nice nice nice nice a", 4),
]  # fmt: skip


@pytest.mark.parametrize(("line", "deep"), SEEN)
def test_a_wrapper_with_known_options_is_looked_through_and_bound(line: str, deep: int) -> None:
    segment = look(line).segments[0]
    assert segment.argv == ("a",)
    assert [each.path for each in segment.executables] == [
        *[f"/usr/bin/{line.split(maxsplit=1)[0]}"] * deep,
        "/usr/bin/a",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "env -S a", "env -iS a", "env -C / a", "env --chdir=/ a", "env -0 a", "env --ignore a",
        "env -u", "env -i",
        "env --unset=X", "env --ignore-environment=x a", "env -x a", "env a=1", "nice -n a",
        "nice -5x a", "nice -x a", "nice --adj 5 a", "timeout a", "timeout -t 5 a", "timeout -z 5 a",
        "timeout 5",
        "timeout --kill 5 5 a", "timeout $X a", "timeout -s $X 5 a", "nohup -x a", "nohup", "stdbuf -x a",
        "stdbuf -o a", "ionice -p 1 a", "ionice -u 0 a", "nice nice nice nice nice a", "setsid a",
    ],
)  # fmt: skip
def test_an_option_that_is_not_known_stops_the_looking(line: str) -> None:
    facts = look(line)
    assert facts.analysable
    assert facts.segments[0].argv[:1] != ("a",)
    assert effect(facts, "/usr/bin/a", "**", ask="off") == "deny"


def test_behind_env_with_a_lone_dash_an_option_is_the_command() -> None:
    assert look("env - -u X a").segments[0].argv == ("-u", "X", "a")


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("sh -c '$0 \"$1\"' prog arg", ("prog", "arg")),
        ("sh -lc '$0 \"$1\"' touch /path/to/file", ("touch", "/path/to/file")),
        ("bash -c '\"$0\" \"$@\"' prog 'a b' '*'", ("prog", "a b", "*")),
        ('bash -c \'exec "$0" "$@"\' prog -x', ("prog", "-x")),
        ('bash -c \'${0} "${2}" "${1}"\' prog a b', ("prog", "b", "a")),
        ("bash -l -c '  $0  $1  ' prog a.b/c-1", ("prog", "a.b/c-1")),
        ('dash -c \'"$0" "$3"\' prog a', ("prog", "")),
        ('bash -c \'"$0" "$1"\' if fi', ("if", "fi")),
        ("bash -c '$0' A=1", ("A=1",)),
    ],
)
def test_operands_stand_where_the_script_names_them(line: str, argv: tuple[str, ...]) -> None:
    facts = look(line)
    segment = facts.segments[0]
    assert segment.argv == argv
    assert segment.through == (f"{line.split(maxsplit=1)[0]} -c",)
    assert look(facts.canonical).canonical == facts.canonical
    assert look(facts.canonical).segments[0].argv[1:] == argv[1:]


@pytest.mark.parametrize(
    "line",
    [
        'sh -c "\'\\$0\' \\"\\$1\\"" touch x',  # quoted singly: a program called $0
        "sh -c 'exec\n$0 \"$1\"' touch x",
        "sh -c '$0\n\"$1\"' touch x",
        "sh -c 'echo blocked; $0 \"$1\"' touch x",
        "sh -c '$0 \"$1\"; id' touch x",
        "sh -c '$0 \"$1\" > y' touch x",
        "sh -c '$0 $1' touch 'a b'",
        "sh -c '$0 $1' touch '*'",
        "sh -c '$0 $1' touch ''",
        "sh -c '$0 $1' touch",
        "sh -c '$0' 'touch x'",
        "sh -c '$0 $@' touch x",
        "sh -c '$0 \"$*\"' touch x",
        "sh -c '$0 \"$10\"' touch x",
        "sh -c '$0 \"a$1\"' touch x",
        "sh -c '$0 a' touch x",
        "sh -c '\"$1\"' x touch",
        "sh -c '\"$@\"' x touch",
        "sh -c '$0$1' to uch",
        "sh -c 'A=1 $0' touch",
        "sh -c 'exec -a x $0' touch",
        "sh -c 'exec exec $0' touch",
        "sh -c 'exec $0' eval",
        "sh -c '$0 \"$1\"' $X x",
        "sh -c '$0 \"$1\"' touch *",
        "sh -c '\"$0\"' ''",
        "sh -c 'command $0' touch",
        "zsh -c '$0 \"$1\"' touch x",
        "sh -xc '$0 \"$1\"' touch x",
    ],
)
def test_a_script_that_does_anything_else_with_operands_is_not_looked_through(line: str) -> None:
    facts = look(line)
    assert facts.segments[0].through == ()
    assert effect(facts, "**", ask="off") == "deny"


def test_a_builtin_among_the_operands_is_a_builtin() -> None:
    assert effect("bash -c '$0 \"$1\"' eval id", "**", ask="off") == "deny"
    assert effect("bash -c '$0 \"$1\"' . /tmp/x", "**", ask="off") == "deny"
    assert look("bash -c '$0 \"$1\" && a' cd /tmp").segments[0].through == ()


PROJECT = World(
    files={"/srv/node_modules/.bin/fmt", "/srv/web/node_modules/.bin/fmt", "/srv/node_modules/.bin/tsc"},
    directories={"/", "/srv", "/srv/web"},
)


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("npx fmt --write .", "/srv/node_modules/.bin/fmt --write ."),
        ("npx --no-install -y -- fmt -w", "/srv/node_modules/.bin/fmt -w"),
        ("npm exec -- tsc --noEmit", "/srv/node_modules/.bin/tsc --noEmit"),
        ("npm exec tsc src", "/srv/node_modules/.bin/tsc src"),
        ("npm x -y -- fmt", "/srv/node_modules/.bin/fmt"),
        ("pnpm exec fmt -w", "/srv/node_modules/.bin/fmt -w"),
        ("bunx fmt", "/srv/node_modules/.bin/fmt"),
        ("cd web && npx fmt", "cd /srv/web && /srv/web/node_modules/.bin/fmt"),
        ("cd web && npx tsc", "cd /srv/web && /srv/node_modules/.bin/tsc"),
        ("nice npx fmt", "/usr/bin/nice /srv/node_modules/.bin/fmt"),
    ],
)
def test_what_the_project_itself_has_installed_runs_in_place_of_its_runner(line: str, canonical: str) -> None:
    facts = look(line, world=PROJECT)
    assert facts.canonical == canonical
    assert look(canonical, world=PROJECT).canonical == canonical
    segment = facts.segments[-1]
    assert segment.executable is not None
    assert segment.executable.path in canonical
    assert segment.through[-1] in {"npx", "npm exec", "npm x", "pnpm exec", "bunx"}
    assert effect(facts, "**", ask="off") == "deny"  # others can change it, so no glob admits it
    if "cd" not in line:
        assert segment.executable.identity.sha256 is not None
        assert judge(facts).always.entries[-1].sha256 == segment.executable.identity.sha256


@pytest.mark.parametrize(
    "line",
    [
        "npx cowsay", "npx fmt@latest", "npx @acme/fmt", "npx ./fmt", "npx -p fmt fmt", "npx --package=x fmt",
        "npx -c fmt", "npx --call fmt", "npx $X", "npx", "npx --", "npx github:a/b", "npx ../fmt", "npx .fmt",
        "npm exec fmt --package=evil", "npm exec --package evil fmt", "npm exec -c fmt", "npm init fmt",
        "npm exe fmt",
        "npm create fmt", "pnpm dlx fmt", "pnpx fmt", "yarn dlx fmt", "yarn exec fmt", "bun x cowsay",
        "bunx cowsay",
        "uvx fmt", "pipx run fmt", "cd $X && npx fmt", "cd /nowhere; npx fmt", "./npx fmt", "bunx --bun fmt",
        "uv tool run fmt", "npm --prefix x exec fmt",
    ],
)  # fmt: skip
def test_every_other_runner_asks_and_is_never_remembered(line: str) -> None:
    judgement = judge(look(line, world=PROJECT), "**")
    assert str(judgement.decision.effect) in {"ask", "deny"}
    assert judgement.always.entries == ()


def test_an_applet_is_what_its_link_is_where_the_path_has_one() -> None:
    links = {f"/usr/bin/{name}": "/usr/bin/busybox" for name in ("grep", "sh", "env", "timeout")}
    world = World(links=links)
    assert look("busybox grep -e x", world=world).canonical == "/usr/bin/grep -e x"
    assert look("busybox sh -c 'a; b'", world=world).canonical == "/usr/bin/sh -c '/usr/bin/a; /usr/bin/b'"
    assert look("timeout 5 env a", world=world).segments[0].through == ("timeout", "env")
    assert effect(look("busybox grep -e x", world=world), "/usr/bin/grep", ask="off") == "allow"
    assert effect(look("busybox grep -e x", world=world), "/usr/bin/rg", ask="off") == "deny"
    for line in (
        "busybox cat x",
        "busybox sh",
        "busybox $X",
        "busybox",
        "busybox --list",
        "busybox /usr/bin/grep x",
    ):
        assert effect(look(line, world=world), "**", ask="off") == "deny"


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("timeout", "timeout 5 a"),
        ("bash", "b && bash -c a"),
        ("bash -c *", "b; bash -c 'a x'"),
        ("timeout *", "b | env timeout 5 a"),
        ("/usr/bin/nice", "nice a"),
        ("npx", "npx fmt"),
        ("npx fmt*", "b && npx fmt"),
        ("nice * a x", "b && nice -n 5 a x"),
    ],
)
def test_a_deny_rule_meets_what_was_looked_through(pattern: str, line: str) -> None:
    facts = look(line, world=PROJECT)
    assert judge(facts, "**", deny=[pattern], security="full").decision.rule == "exec.deny"
    assert judge(facts, "**", deny=[f"{pattern}-not"], security="full").decision.rule != "exec.deny"


def test_a_wrapped_command_runs_by_the_paths_that_were_found() -> None:
    assert run_argv(look("nice a b"))[-1] == "/usr/bin/nice /usr/bin/a b"


@pytest.mark.parametrize(
    "line", ["printf %ln PATH", "printf %hn PATH", "printf '%-5.3lln' IFS", "printf x%n A"]
)
def test_printf_that_assigns_asks(line: str) -> None:
    assert effect(line, ask="off") == "deny"


@pytest.mark.parametrize(
    ("line", "inline"),
    [
        ("python3 -W ignore", True), ("python3 -X dev", True), ("python3 -u", True), ("node -r ./x", True),
        ("bash -o pipefail", True), ("perl -I lib", True), ("python3 //dev/stdin", True),
        ("bash /dev/fd/3", True),
        ("python3 /proc/1/fd/0", True), ("php -d a=b", True), ("bash /dev/../dev/stdin", True),
        ("sh -- -", True),
        ("python3 -uW ignore x.py", False), ("python3 -m pytest", False), ("bash -o pipefail x.sh", False),
        ("bash -eu x.sh", False), ("java -jar x.jar", False), ("php -S localhost:80", False),
        ("perl -w x", False),
        ("node --watch x.js", False), ("node --require=./x app.js", False), ("python3 -- x.py", False),
    ],
)  # fmt: skip
def test_a_value_of_an_option_is_not_taken_for_the_program(line: str, inline: bool) -> None:  # noqa: FBT001 - a parametrised expectation
    assert look(line).inline_code is inline
    assert bool(judge(line).always.entries) is not inline


@pytest.mark.parametrize(
    "name",
    [
        "KUBECONFIG",
        "GOROOT",
        "CMAKE_TOOLCHAIN_FILE",
        "X_COMMAND",
        "NODE_EXTRA_CA_CERTS",
        "DOCKER_HOST",
        "PHP_INI",
    ],
)
def test_variables_that_change_what_runs_ask_wherever_they_are_set(name: str) -> None:
    for line in (f"{name}=x rg", f"env {name}=x rg", f"bash -c '{name}=x rg'", f"{name}=x; rg"):
        assert effect(line, "**", ask="off") == "deny"
    assert effect("rg", "**", ask="off", env=((name, "x"),)) == "deny"
    assert effect("rg", "**", ask="off", env=(("TERM", "x"),)) == "allow"
