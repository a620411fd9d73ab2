"""Reasons say what is true, of every command that needs a person, and what would change it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.execsec.decide import decide, fallback_allows
from core.execsec.pins import cannot_be_pinned
from core.execsec.policy import effective
from core.execsec.reasons import joined
from core.model.allowlist import AllowlistEntry
from core.model.command import (
    UNHASHED,
    CommandFacts,
    Directory,
    Executable,
    FileIdentity,
    Placement,
    Segment,
    Word,
)
from core.model.decision import Obligation
from tests.shell_world import Config, judge, look, policy


def why(line, *patterns, **settings) -> str:
    return judge(line, *patterns, **settings).decision.reason


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ls 2>>/dev/null", "`2>>/dev/null` is not judged in this form; write >, 2>, &> or < before"),
        ("ls >|/dev/null", "`>|/dev/null` is not judged in this form"),
        ("ls 3>/dev/null", "`3>/dev/null` is not judged in this form"),
        ("ls 2>&-", "`2>&-` copies or closes a descriptor"),
        ("ls 3>&1", "`3>&1` copies or closes a descriptor"),
        ("ls > out", "`>out` redirects to or from something other than /dev/null"),
        ("ls >& out", "`>&out` redirects to or from something other than /dev/null"),
        ("kill 1", "the builtin `kill` sends a signal to processes"),
        ("type ls", "the builtin `type` tells about the shell"),
        ("wait", "the builtin `wait` deals with what the shell runs in the background"),
        ("history", "the builtin `history` reads or changes the history of the shell"),
        ("test -v x", "the builtin `test` may evaluate what stands behind -v or -R"),
        ("export A=1", "the builtin `export` changes the shell it runs in"),
        ("eval ls", "the builtin `eval` can run other commands"),
        ("env", "`env` prints the whole environment, in which secrets may stand"),
        ("env -0 A=1", "`env` prints the whole environment, in which secrets may stand"),
        ("env -S ls", "`env` runs another command, which is not judged"),
        ("env --split-string=ls", "`env` runs another command, which is not judged"),
        ("time make", "`time` is a word of bash that measures what stands behind it"),
        ("! make", "`!` only turns the status of the command around"),
        ("for i in 1; do ls; done", "`for` belongs to a compound command"),
        ("[[ -f x ]]", "`[[` belongs to a conditional expression"),
        ("python3", "`python3` runs what comes in at its input, so nothing remembered admits it"),
        ("bash -s", "`bash` runs what comes in at its input, so nothing remembered admits it"),
        ("python3 -c x", "`python3` is given code to run, which only an entry with exactly these arguments"),
        ("find -exec ls", "`find -exec` runs a command on what it finds, which is not judged"),
        ("rg --pre=x y", "`rg --pre=x` runs or loads another program, which is not judged"),
        ("cd nowhere && ls", "`cd nowhere` stands before it, and there is no such directory now"),
        ("cd $X && ls", "a command before it may change the shell, or its directory, in a way that cannot"),
        ("./gone.sh", "`./gone.sh` is no program that may be run: there is no such file, or it is not"),
        ("nonesuch", "`nonesuch` is not a program on the PATH"),
        ("ls \0", "nul-byte (at character 4): U+0000 is a NUL, where every program would stop reading"),
        ("head notes.txt", "unlisted only as a filter of its input: here it is given the file `notes.txt`"),
        ("head -n 3 - .env", "here it is given the file `.env`"),
        ("tail -f", "one of its options may do more"),
    ],
)  # fmt: skip
def test_a_reason_says_what_is_true(line: str, told: str) -> None:
    assert told in why(line)


def test_a_file_for_a_filter_is_spoken_of_only_where_it_is_a_listed_one() -> None:
    grep = "grep -e SECRET .env"
    assert "here it is given the file `.env`" in why(grep, safeBins=["grep"])
    assert "filter" not in why(grep)


def test_every_command_that_is_missing_is_named_and_of_many_the_first_three() -> None:
    assert why("cat a && rm -rf b") == (
        "`/usr/bin/cat` with these arguments is on no allowlist (so too `/usr/bin/rm`)"
    )
    both = why("curl x | sh")
    assert "`/usr/bin/curl`" in both
    assert "`sh` runs what comes in" in both
    many = why("a1; b2; c3; d4; e5", "/usr/bin/b2")
    assert many.endswith("(so too `/usr/bin/c3` and `/usr/bin/d4`); and 1 more")
    assert "b2" not in many


def test_what_is_missing_beside_a_hazard_is_named_too() -> None:
    assert why("ls *.py | rm x") == (
        "`*.py` is not literal: bash would expand it (glob); "
        "`/usr/bin/rm` with these arguments is on no allowlist"
    )


def test_a_reason_is_said_once_and_its_backticks_may_hold_anything() -> None:
    assert joined(["a b", "a b"]) == "a b"
    assert joined(["`a` x", "b", "`c` x"]) == "`a` x (so too `c`); b"
    assert joined([]) == ""


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("ls > x", "tools.exec.onUnanalysable (default)"),
        ("cat <<< x", "tools.exec.onUnanalysable (default)"),
        ("for i in 1; do ls; done", "tools.exec.onUnanalysable (default)"),
    ],
)
def test_a_setting_that_nobody_wrote_is_named_by_its_key(line: str, source: str) -> None:
    assert judge(line).decision.source == source
    assert judge(line, onUnanalysable="deny").decision.source == "tools.exec.onUnanalysable"


def test_every_setting_has_a_key_also_where_nothing_is_written() -> None:
    nothing = effective(Config.model_validate({}), "main", Placement.SANDBOX)
    sources = {nothing.source(name) for name in nothing.sources}
    assert "tools.exec.safeBinTrustedDirs (default)" in sources
    assert all(each.startswith("tools.exec.") and each.endswith(" (default)") for each in sources)


def test_where_nobody_is_asked_no_always_is_offered() -> None:
    offered = judge("rm x", ask="off").always
    assert (offered.entries, offered.words) == ((), ())
    assert "nobody is asked here (ask: off)" in (offered.why or "")
    assert judge("rm x").always.entries
    assert judge("rm x", "rm", ask="off").always.why == "everything in it is admitted already"


def test_our_own_state_as_the_directory_of_a_command_is_named() -> None:
    facts = look("ls", cwd="/home/agent/.sayso/outputs")
    assert why(facts, "ls") == (
        "the command would run in /home/agent/.sayso/outputs, among Sayso's own state, where no command may"
    )
    assert "touches Sayso's own state" in why("ls /home/agent/.sayso", "ls")


ONCE = {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}


def test_what_is_always_asked_is_never_remembered_nor_answered_by_nobody() -> None:
    always = judge("rg x", "rg", ask="always").decision
    assert (always.rule, always.obligations) == ("exec.ask-always", ONCE)
    assert judge("rg x", security="full", ask="always").decision.obligations == ONCE


def test_code_in_the_words_is_never_answered_by_nobody_under_full() -> None:
    asked = judge("python3 -c x", security="full").decision
    assert (asked.rule, asked.obligations) == ("exec.ask-on-miss", {Obligation.NO_FALLBACK})
    assert judge("rg x", security="full").decision.obligations == frozenset()


@pytest.mark.parametrize("line", ["nonesuch x", "rg x; nonesuch", "./gone.sh"])
def test_nobodys_answer_admits_no_program_that_is_not_there(line: str) -> None:
    everything = [AllowlistEntry(pattern, source="test") for pattern in ("**", "*", "nonesuch", "./gone.sh")]
    open_to_it = policy(askFallback="allowlist")
    assert fallback_allows(look("rg x"), open_to_it, everything, Placement.SANDBOX, ())
    assert not fallback_allows(look(line), open_to_it, everything, Placement.SANDBOX, ())


@pytest.mark.parametrize(("digest", "named"), [(None, "/w/x"), (UNHASHED, "/w/x"), ("a" * 64, None)])
def test_a_program_of_others_whose_text_is_not_known_cannot_be_pinned(digest, named) -> None:
    identity = FileIdentity(1, 1, 1, 1, 1, digest)
    program = Executable("x", "/w/x", "/w/x", identity, trusted=False)
    segment = Segment(words=(Word("x", "x"),), executable=program, cwd="/w")
    assert cannot_be_pinned(segment) == named
    place = Directory("/w", 1, 1)
    learned = AllowlistEntry("/w/x", args=(), real_path="/w/x", sha256=digest, directory=place)
    facts = CommandFacts(text="x", canonical="/w/x", segments=(segment,), directories=(place,))
    judgement = decide(facts, policy(ask="off"), [learned], Placement.SANDBOX, env=(), seen_before=False)
    assert str(judgement.decision.effect) == ("deny" if named else "allow")


def test_an_entry_without_a_pin_admits_no_program_that_others_can_change() -> None:
    learned = AllowlistEntry(
        "/srv/run.sh", args=(), real_path="/srv/run.sh", directory=Directory("/srv", 1, 1)
    )
    assert str(judge("./run.sh", replace(learned, sha256="a" * 64), ask="off").decision.effect) == "allow"
    assert str(judge("./run.sh", learned, ask="off").decision.effect) == "deny"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("PS4='$(id)' ls; if true; then ls; fi", "PS4='$(id)'"),
        ("if true; then export LD_PRELOAD=./x.so; fi", "LD_PRELOAD=./x.so"),
        ("if true; then PATH+=:/tmp ls; fi", "PATH=:/tmp"),
        ("f() { A=$(id); }", "A=$(id)"),
        ('for x in a; do BASH_ENV="./a b" sh x; done', 'BASH_ENV="./a b"'),
        ("if true; then GIT_SSH=" + "x" * 300 + " ls; fi", "GIT_SSH=(300 characters)"),
    ],
)
@pytest.mark.parametrize("mode", ["ask", "deny"])
def test_of_a_line_that_is_not_judged_the_reason_names_variables_that_change_what_runs(line, named, mode):
    reason = judge(line, onUnanalysable=mode).decision.reason
    assert f"the text sets {named}, which can change what runs" in reason


@pytest.mark.parametrize("line", ["if true; then A=1 ls; fi", "if true; then echo x PATHS=y; fi"])
def test_of_a_line_that_is_not_judged_plain_variables_are_not_named(line):
    assert "can change what runs" not in judge(line, onUnanalysable="ask").decision.reason


def test_of_a_line_that_is_not_judged_the_requests_own_variables_are_named_too():
    decision = judge(
        "if true; then ls; fi", onUnanalysable="ask", env=(("PS4", "$(id)"), ("A", "1"))
    ).decision
    assert "the request sets PS4=$(id), which can change what runs" in decision.reason
    assert "A=1" not in decision.reason
