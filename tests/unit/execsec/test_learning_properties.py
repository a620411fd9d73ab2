"""What "always" says and saves are the same, over generated commands; and what entries can never do."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from core.execsec.decide import decide
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.command import CommandFacts, Directory, Placement
from core.model.decision import Effect
from core.shell.render import quote
from tests.shell_world import World, effect, judge, look, policy

PLAIN = ("rg", "ls", "whoami", "/usr/bin/rg", "./run.sh", "tools/rg", "cut")
ANYTHING = ("git", "python3", "make", "bash", "npm", "sed")
ARGUMENT = st.text("abc -_/=.$*'\"\\;|&~{}é", max_size=6)
SIMPLE = st.tuples(
    st.sampled_from(PLAIN + ANYTHING), st.lists(ARGUMENT, max_size=3), st.sampled_from(("", "nice ", "A=1 "))
)
OPERATORS = st.sampled_from((" && ", " || ", "; ", " | ", " & "))
LEARNABLE = ("rg", "ls", "whoami", "git", "make", "npm")
READING = ("ls", "whoami", "cut", "grep", "cat")
EXACTLY = re.compile(
    r"exactly `(.*)` in (/srv|any directory), (in the sandbox|on the host)(, as long as .*)?", re.DOTALL
)
ANY = re.compile(r"any `([a-z]+)` command (in the sandbox|on the host)")


def written(command: tuple[str, list[str], str]) -> str:
    name, arguments, before = command
    return before + " ".join([name, *map(quote, arguments)])


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line of one to three commands, literal throughout."""
    line = written(draw(SIMPLE))
    for _ in range(draw(st.integers(0, 2))):
        line += draw(OPERATORS) + written(draw(SIMPLE))
    return line


def matches_words(entry: AllowlistEntry, words: str, placement: Placement) -> None:
    """Check that the words say what the entry is, no more and no less."""
    said = EXACTLY.fullmatch(words)
    assert said, words
    text, directory, where, pinned = said.groups()
    name, *arguments = shlex.split(text)
    assert entry.args == tuple(arguments)
    assert entry.pattern.endswith("/" + name.rpartition("/")[2])
    assert (entry.directory is None) is (directory == "any directory") is (name in READING)
    assert entry.directory in (None, Directory("/srv", 1, 1))
    assert not entry.any_arguments
    assert bool(pinned) is (entry.sha256 is not None)
    is_theirs(entry, where, placement)


def matches_wider_words(entry: AllowlistEntry, words: str, placement: Placement) -> None:
    """Check the same of what "always, with any arguments" would leave."""
    said = ANY.fullmatch(words)
    assert said, words
    assert said[1] in READING
    assert (entry.pattern, entry.args, entry.any_arguments) == (f"/usr/bin/{said[1]}", None, True)
    assert (entry.directory, entry.sha256) == (None, None)
    is_theirs(entry, said[2], placement)


def is_theirs(entry: AllowlistEntry, where: str, placement: Placement) -> None:
    assert (where == "in the sandbox") is (placement is Placement.SANDBOX)
    assert (entry.placement, entry.agent) == (placement, "main")
    assert entry.arg_pattern is None
    assert entry.real_path is not None


@given(lines(), st.sampled_from((Placement.SANDBOX, Placement.HOST)))
def test_words_and_entries_are_the_same_and_learning_admits_exactly_that(
    line: str, placement: Placement
) -> None:
    offer = judge(line, placement=placement).always
    assert bool(offer.entries) is (offer.why is None)
    for entries, all_words, matches in (
        (offer.entries, offer.words, matches_words),
        (offer.wider, offer.wider_words, matches_wider_words),
    ):
        assert len(entries) == len(all_words) == len(set(entries))
        for entry, words in zip(entries, all_words, strict=True):
            matches(entry, words, placement)
        if entries:
            admits_with_all_of(entries, line, placement)


def admits_with_all_of(entries: tuple[AllowlistEntry, ...], line: str, placement: Placement) -> None:
    assert effect(line, *entries, placement=placement, ask="off") == "allow"
    for entry in entries:  # each of them is needed
        rest = [other for other in entries if other is not entry]
        assert effect(line, *rest, placement=placement, ask="off") == "deny"
    elsewhere = Placement.HOST if placement is Placement.SANDBOX else Placement.SANDBOX
    assert effect(line, *entries, placement=elsewhere, ask="off") == "deny"
    others = [structs.replace(entry, agent="other") for entry in entries]
    assert effect(line, *others, placement=placement, ask="off") == "deny"


NEIGHBOURS = st.tuples(
    st.sampled_from((*LEARNABLE, *READING)),
    st.lists(ARGUMENT, max_size=3),
    st.sampled_from(("/srv", "/srv/tools", "/tmp")),
    st.sampled_from((1, 1, 2)),  # which directory is there: the second one was put in the place of the first
)


@given(NEIGHBOURS, NEIGHBOURS, st.booleans(), st.booleans())
def test_what_always_admits_is_never_more_than_its_words_say(
    one: tuple[str, list[str], str, int],
    other: tuple[str, list[str], str, int],
    wider: bool,  # noqa: FBT001 - generated
    near: bool,  # noqa: FBT001 - generated
) -> None:
    if near:  # a neighbour that differs in its directory alone
        other = (*one[:2], *other[2:])
    offer = judge(seen(*one)).always
    entries = offer.wider if wider else offer.entries
    assume(entries)
    assume(
        judge(seen(*other), ask="on-miss").always.entries
    )  # what is never remembered is asked about anyway
    same_place = one[2:] == other[2:] or one[0] in READING
    same = one[0] == other[0] and (wider or (one[1] == other[1] and same_place))
    assert effect(seen(*one), *entries, ask="off") == "allow"
    assert effect(seen(*other), *entries, ask="off", safeBins=[]) == ("allow" if same else "deny")


def seen(name: str, arguments: list[str], cwd: str, inode: int) -> CommandFacts:
    return look([name, *arguments], cwd=cwd, world=World(inodes={cwd: inode}))


PATTERNS = st.one_of(
    st.sampled_from(("**", "/usr/bin/*", "/usr/bin/rg", "rg", "*", "/srv/**", "~/bin/*", "/usr/bin/p*")),
    st.text("/*?abinrgsu.~", min_size=1, max_size=12),
)
ENTRIES = st.builds(
    AllowlistEntry,
    pattern=PATTERNS,
    args=st.none() | st.lists(ARGUMENT, max_size=2).map(tuple),
    arg_pattern=st.none() | st.sampled_from((".*", "x", "-c .*", "(")),
    placement=st.sampled_from(tuple(Placement)),
    real_path=st.none() | st.sampled_from(("/usr/bin/rg", "/usr/bin/python3.11", "/srv/run.sh")),
    sha256=st.none() | st.just("a" * 64),
    agent=st.none() | st.sampled_from(("main", "other")),
    directory=st.none() | st.sampled_from((Directory("/srv", 1, 1), Directory("/srv", 1, 2))),
    any_arguments=st.booleans(),
)
MODES = st.tuples(
    st.sampled_from(("deny", "allowlist", "full")), st.sampled_from(("off", "on-miss", "always"))
)


def judged(line: str, entries: list[AllowlistEntry], modes: tuple[str, str], placement: Placement) -> Effect:
    under = policy(placement, security=modes[0], ask=modes[1])
    return decide(look(line), under, entries, placement, env=(), seen_before=False).decision.effect


@given(lines(), st.lists(ENTRIES, max_size=3), ENTRIES, MODES, st.sampled_from(tuple(Placement)))
def test_adding_an_entry_never_makes_an_answer_stricter(
    line: str,
    entries: list[AllowlistEntry],
    one_more: AllowlistEntry,
    modes: tuple[str, str],
    placement: Placement,
) -> None:
    before = judged(line, entries, modes, placement)
    assert judged(line, [*entries, one_more], modes, placement) <= before
    assert judged(line, [one_more, *entries], modes, placement) <= before


@given(lines(), st.lists(ENTRIES, max_size=4), MODES)
def test_an_entry_of_another_place_or_agent_never_counts(
    line: str, entries: list[AllowlistEntry], modes: tuple[str, str]
) -> None:
    strange = [
        structs.replace(entry, placement=Placement.HOST)
        if index % 2
        else structs.replace(entry, agent="other")
        for index, entry in enumerate(entries)
    ]
    assert judged(line, strange, modes, Placement.SANDBOX) == judged(line, [], modes, Placement.SANDBOX)


@given(lines(), st.lists(ENTRIES, max_size=4))
def test_no_entry_lifts_a_denial_that_is_not_about_being_listed(
    line: str, entries: list[AllowlistEntry]
) -> None:
    everything = [*entries, AllowlistEntry("**"), AllowlistEntry("**", arg_pattern="(?s).*")]
    assert judged(line, everything, ("deny", "off"), Placement.SANDBOX) is Effect.DENY
    assert judged(f"{line} > out", everything, ("allowlist", "on-miss"), Placement.SANDBOX) is Effect.DENY
    assert judged(f"sudo {line}", everything, ("allowlist", "on-miss"), Placement.SANDBOX) >= Effect.ASK


def test_an_offer_without_entries_says_why_and_one_with_entries_has_words_for_each() -> None:
    for line in ("rg x", "rg $X", "git push && ls", "sudo rg"):
        offer = judge(line).always
        assert isinstance(offer, AlwaysOffer)
        assert bool(offer.why) is not bool(offer.entries)


@pytest.mark.parametrize("line", ["cut -f1", "rg x | cut -f1", "echo x | wc -l"])
def test_what_a_safe_bin_admits_is_not_saved(line: str) -> None:
    assert all("cut" not in words and "wc" not in words for words in judge(line).always.words)
