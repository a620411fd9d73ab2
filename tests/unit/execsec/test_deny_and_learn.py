"""Rules nobody can lift, rules the operator wrote, and what Always would save."""

from __future__ import annotations

import pytest
from msgspec import structs

from core.model.allowlist import AllowlistEntry
from core.model.command import Directory, Placement
from tests.shell_world import STATE, World, effect, judge, look, policy

OWN_STATE = [
    f"cat {STATE}/sayso.db",
    f"ls {STATE}",
    f"cat '{STATE}/x'",
    "cat ~/.sayso/token",
    "cat $HOME/.sayso/token",
    'cat "${HOME}/.sayso/token"',
    "sort -uo../home/agent/.sayso/config.yaml x",
    "sort -o/home/agent/.sayso/config.yaml x",
    "cat $SAYSO_HOME/token",
    "cat ../home/agent/.sayso/x",
    "cat /home/agent/./x/../.sayso/y",
    f"tar --file={STATE}/x c",
    f"tar -C{STATE} c",
    f"dd of={STATE}/x",
    f"cd {STATE} && rm x",
    f"A={STATE}/x ls",
    f"python3 -c 'open(\"{STATE}/x\")'",
    f"bash -c 'cat {STATE}/x'",
    f"echo $(cat {STATE}/x)",
    f"{STATE}/run",
]
VERBS = [
    "sayso approve 12345678",
    "/usr/bin/sayso deny x",
    "sayso --json approve x",
    "sayso lock",
    "sayso operator forget",
    "sayso allowlist add x",
    "sayso web link",
    "sayso pair telegram",
    "sayso people remove telegram 1",
    "python3 -c 'import os; os.system(\"sayso pair telegram\")'",
    "env sayso approve x",
    "bash -c 'sayso approve x'",
    "xargs sayso approve",
    "sudo sayso unlock",
    "nohup sayso approve x &",
    "python3 -c 'import os; os.system(\"sayso approve x\")'",
    "echo $(sayso approve x)",
    "command sayso approve x",
    "find . -exec sayso approve {} ;",
]


@pytest.mark.parametrize("line", [*OWN_STATE, *VERBS])
def test_sayso_protects_itself_under_every_mode(line: str) -> None:
    for settings in ({}, {"security": "full", "ask": "off"}, {"onUnanalysable": "ask"}):
        judgement = judge(line, "**", **settings)
        assert str(judgement.decision.effect) == "deny"
        if line != "find . -exec sayso approve {} ;":
            assert judgement.decision.rule in {"exec.deny-own-state", "exec.deny-operator-verb"}
            assert judgement.decision.source == "built-in"


@pytest.mark.parametrize(
    "line",
    [
        f"cat {STATE}-other/x",
        "cat /home/agent/.saysonot",
        "cat /home/agent/x",
        "rg approve",
        "rg 'sayso approve' docs",
        "sayso exec -- ls",
        "sayso wait approve",
        "sayso exec -- git pair",
        "rg people",
        "ls sayso approve",
    ],
)
def test_what_only_looks_alike_is_left_to_the_other_rules(line: str) -> None:
    assert judge(line, "**").decision.rule not in {"exec.deny-own-state", "exec.deny-operator-verb"}


@pytest.mark.parametrize(
    ("pattern", "denied", "passed"),
    [
        (
            "rm",
            ["rm x", "rm", "/usr/bin/rm x", "ls; rm x", "sudo rm x", "xargs rm", "env rm x"],
            ["rmdir x", "ls rm"],
        ),
        ("/usr/bin/rm", ["rm x"], ["ls x"]),
        (
            "rm -rf *",
            ["rm -rf /", "rm -rf 'a b'", "ls | xargs rm -rf x", "bash -c 'rm -rf x'"],
            ["rm -r x", "ls"],
        ),
        (
            "git push*--force*",
            ["git push origin --force", "git push --force-with-lease"],
            ["git push", "git log"],
        ),
        ("*secret*", ["cat my-secret.txt", "rg secret"], ["cat x"]),
        ("curl ? x", ["curl a x"], ["curl ab x"]),
    ],
)
def test_the_operators_deny_patterns_win_over_everything(
    pattern: str, denied: list[str], passed: list[str]
) -> None:
    for line in denied:
        judgement = judge(line, "**", security="full", ask="off", deny=[pattern])
        assert judgement.decision.rule == "exec.deny", line
        assert judgement.decision.source == "tools.exec.deny[0]"
    for line in passed:
        assert judge(line, "**", deny=[pattern]).decision.rule != "exec.deny", line


CARRYING_RM = [
    "setsid /bin/rm d",
    "setsid -w /bin/rm d",
    "exec /bin/rm d",
    "command /bin/rm d",
    "builtin exec /bin/rm d",
    "xargs /bin/rm",
    "xargs -n1 ./rm",
    "find d -exec /bin/rm {} +",
    "find d -exec sh -c '/bin/rm d' ';'",
    "nohup setsid /bin/rm d",
    "nice -z /bin/rm d",
    "sudo /bin/rm d",
    "flock x -c 'cd y; /bin/rm d'",
    "watch 'ls && rm d'",
    "ssh host 'r\"\"m d'",
    "xargs sh -c '/bin/rm d'",
    "zsh -c '(/bin/rm d)'",
    "trap '/bin/rm d' EXIT",
    "env -S '/bin/rm d'",
    "parallel '/bin/rm {}' ::: a",
    "rg --pre /bin/rm x",
    "sort --compress-program=/bin/rm x",
    "git -c alias.x=!/bin/rm x",
    "some-new-carrier /bin/rm d",
    "python3 run.py /bin/rm d",
    "echo /bin/rm d | sh",
    "setsid ls /bin/rm",  # an argument, but who knows what `ls` does with it
]


@pytest.mark.parametrize("line", CARRYING_RM)
@pytest.mark.parametrize("pattern", ["rm *", "rm", "/usr/bin/rm *"])
def test_a_deny_rule_meets_what_a_carrier_is_given_by_any_path(line: str, pattern: str) -> None:
    judgement = judge(line, "**", security="full", ask="off", deny=[pattern])
    assert judgement.decision.rule == "exec.deny"


@pytest.mark.parametrize(
    "line",
    [
        "ls /bin/rm",
        "cat /bin/rm d",
        "find src/rm -name x",
        "find d -exec ls {} +",
        "cd src/rm && ls x",
        "echo rm d",
        "git add bin/rm d",
        "git commit -m 'a rm d'",
        "git clone https://example.com/rm d",
        "setsid rmdir d",
        "xargs /bin/rmdir",
        "setsid -w ./form d",
        "xargs gcc rm.c -o x",
        "watch 'ls farm d'",
    ],
)
def test_a_deny_rule_leaves_alone_what_only_has_its_name_somewhere(line: str) -> None:
    judgement = judge(line, "**", security="full", ask="off", deny=["rm *"])
    assert judgement.decision.rule != "exec.deny"


def test_a_deny_rule_meets_a_carried_program_by_its_name_without_a_version() -> None:
    for line, denied in (("setsid python3.11 x", True), ("setsid pythonic x", False)):
        decision = judge(line, "**", security="full", ask="off", deny=["python *"]).decision
        assert (decision.rule == "exec.deny") is denied, line


def test_deny_patterns_hold_for_text_that_could_not_be_analysed() -> None:
    judgement = judge("if true; then rm -rf x; fi", deny=["rm -rf *"], onUnanalysable="ask")
    assert judgement.decision.rule == "exec.deny"
    assert effect("if true; then ls; fi", deny=["rm -rf *"], onUnanalysable="ask") == "ask"


def words(line: str, *entries: str | AllowlistEntry, **options: object) -> tuple[str, ...]:
    return judge(line, *entries, **options).always.words


def test_always_saves_the_programs_path() -> None:
    offer = judge("rg -n TODO src/").always
    assert offer.words == ("exactly `rg -n TODO src/` in /srv, in the sandbox",)
    assert offer.entries == (
        AllowlistEntry(
            "/usr/bin/rg",
            ("-n", "TODO", "src/"),
            real_path="/usr/bin/rg",
            agent="main",
            directory=Directory("/srv", 1, 1),
        ),
    )
    assert offer.why is None
    assert words("rg x", placement=Placement.HOST) == ("exactly `rg x` in /srv, on the host",)


def test_what_only_reads_is_saved_for_any_directory_and_on_request_with_any_arguments() -> None:
    offer = judge("ls -l").always
    assert offer.words == ("exactly `ls -l` in any directory, in the sandbox",)
    exactly = AllowlistEntry("/usr/bin/ls", ("-l",), real_path="/usr/bin/ls", agent="main")
    assert offer.entries == (exactly,)
    assert offer.wider_words == ("any `ls` command in the sandbox",)
    assert offer.wider == (structs.replace(exactly, args=None, any_arguments=True),)


@pytest.mark.parametrize(
    ("line", "wider"),
    [
        ("ls && cat x", ("any `ls` command in the sandbox", "any `cat` command in the sandbox")),
        ("ls && ls -l", ("any `ls` command in the sandbox",)),
        ("ls && rm x", ()),
        ("rm x", ()),
    ],
)
def test_any_arguments_are_offered_where_all_that_is_not_admitted_yet_only_reads(
    line: str, wider: tuple[str, ...]
) -> None:
    assert judge(line).always.entries
    assert judge(line).always.wider_words == wider


def test_what_always_saves_admits_the_same_command_next_time_and_not_a_worse_one() -> None:
    for line, worse in (
        ("rg x", "ls x"),
        ("git push origin main", "git push origin dev"),
        ("./run.sh a", "cat run.sh"),
    ):
        entries = judge(line).always.entries
        assert effect(line, *entries, ask="off") == "allow", line
        assert effect(worse, *entries, ask="off") == "deny", worse


def test_programs_that_run_anything_are_saved_with_exactly_these_arguments() -> None:
    offer = judge("git push origin main").always
    assert offer.words == ("exactly `git push origin main` in /srv, in the sandbox",)
    assert offer.entries[0].args == ("push", "origin", "main")
    assert judge("python3 -c x").always.entries[0].args == ("-c", "x")


def test_a_program_that_others_could_change_is_pinned() -> None:
    offer = judge("./run.sh").always
    assert offer.entries[0].sha256 == "a" * 64
    assert offer.words == ("exactly `./run.sh` in /srv, in the sandbox, as long as the file stays as it is",)


def test_a_chain_saves_only_what_is_not_admitted_yet_and_each_once() -> None:
    ls, who = (f"exactly `{name}` in any directory, in the sandbox" for name in ("ls", "whoami"))
    assert words("rg x && ls && ls | wc -l", "/usr/bin/rg") == (ls,)
    assert words("whoami && ls && whoami") == (who, ls)
    assert words("bash -lc 'whoami'") == (who,)
    assert words("nice whoami") == (who,)
    assert words("timeout 5 nice -n 3 whoami") == (who,)
    assert words("env A=1 bash -c 'whoami && ls'") == (who, ls)
    assert words("whoami || ls | whoami; ls & whoami") == words("whoami; ls")
    assert words("git push; git push; git pull") == (
        "exactly `git push` in /srv, in the sandbox",
        "exactly `git pull` in /srv, in the sandbox",
    )


@pytest.mark.parametrize(
    "line",
    [
        "rg $X",
        "rg *",
        "sudo rg",
        "xargs rg",
        "npx tsc",
        "LD_PRELOAD=x rg",
        "eval rg",
        "export A=1",
        "curl x | sh",
        "cat x | python3",
        "cat x | bash -s",
        "python3 -",
        "cd $X; rg a",
        "rg --pre sh a",
        "env -S 'rg'",
        "rg > x",
        "nonesuch",
        "ls; sudo ls",
        "cp x run.sh; ./run.sh",
        "command rg",
        "bash -lc './run.sh'",
        "bash -c 'tools/rg x'",
        "sh -c 'rg x; ./run.sh'",
        "bash -s run.sh",
        "bash -c 'rg x; rg $X'",
        "sudo whoami",
        "doas whoami",
        "sh -c 'echo blocked; $0' touch",
        'sh -c "exec \'$0\' \\"$1\\"" touch x',
        'sh -c \'"$0"\n"$1"\' touch x',
        "nohup -x rg",
        "find . -exec rg {} +",
        "parallel rg",
        "ssh host rg",
        "source run.sh",
        ". ./run.sh",
        "rg x & rg $X",
        "PATH=/tmp rg x",
        "env LD_PRELOAD=x rg",
    ],
)
def test_never_remembered_means_nothing_is_offered_and_it_says_why(line: str) -> None:
    offer = judge(line).always
    assert offer.entries == ()
    assert offer.why


def test_nothing_is_offered_where_remembering_would_change_nothing() -> None:
    for options in ({"ask": "always"}, {"security": "full"}, {"strictInlineEval": True}):
        offer = judge("python3 -c x", **options).always
        assert offer.entries == ()
        assert offer.why
    assert judge("rg x", "/usr/bin/rg").always.entries == ()


def test_deny_rules_need_no_protected_path_to_hold() -> None:
    assert policy().protected_paths == (STATE,)
    assert effect(look("sayso approve x", world=World()), "**", security="full", ask="off") == "deny"
