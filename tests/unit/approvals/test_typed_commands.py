"""What people type in chats, and what it must never be taken for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.approvals.commands import (
    HELP,
    LONGEST_MS,
    SHORTEST_MS,
    Approve,
    Command,
    Deny,
    Elevated,
    How,
    Malformed,
    Pair,
    Pending,
    SaysoBind,
    SaysoHelp,
    SaysoLock,
    SaysoStatus,
    SaysoUnlock,
    parse,
)
from core.display import safe
from core.model.elevation import Level
from core.model.session import SessionKey

ID = "7fa7f893"
FULL_ID = "7fa7f893-0000-4a4a-8b8b-0123456789ab"
HOUR = 3_600_000
HOSTILE = [
    "\u202e",
    "\u2066",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u00ad",
    "\x00",
    "\x1b[2J",
    "\x7f",
    "\x85",
    "\u2028",
    "\u00a0",
    "\u3000",
    "\x0b",
    "\x0c",
    "\x1c",
    "\ud800",
    "\U000e0041",
    "\ufe0f",
    "e" + "\u0301" * 40,
]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (f"/approve {ID}", Approve(ID)),
        (f"/approve {FULL_ID}", Approve(FULL_ID)),
        (f"/approve {FULL_ID.upper()}", Approve(FULL_ID)),
        (f"  /APPROVE\t {ID.upper()} \n", Approve(ID)),
        (f"/approve {ID} once", Approve(ID)),
        (f"/approve {ID} always", Approve(ID, How.ALWAYS)),
        (f"/approve always {ID}", Approve(ID, How.ALWAYS)),
        (f"/approve {ID} always any", Approve(ID, How.ALWAYS_ANY)),
        (f"/approve always any {ID}", Approve(ID, How.ALWAYS_ANY)),
        (f"/approve {ID} Allow-Always-Any", Approve(ID, How.ALWAYS_ANY)),
        (f"/Approve ALWAYS {ID}", Approve(ID, How.ALWAYS)),
        (f"/approve {ID} allow-always", Approve(ID, How.ALWAYS)),
        (f"/approve {ID} for 30m", Approve(ID, How.FOR, HOUR // 2)),
        (f"/approve for 30M {ID}", Approve(ID, How.FOR, HOUR // 2)),
        (f"/approve {ID} for 30s", Approve(ID, How.FOR, 30_000)),
        (f"/approve {ID} for 1d", Approve(ID, How.FOR, 24 * HOUR)),
        (f"/approve {ID} deny", Deny(ID)),
        (f"/approve deny {ID}", Deny(ID)),
        (f"/approve {ID} DENY not today", Deny(ID, reason="not today")),
        (f"/approve deny {ID} not today", Deny(ID, reason="not today")),
        (f"/approve {ID} deny always", Deny(ID, always=True)),
        (f"/approve deny always {ID}", Deny(ID, always=True)),
        (f"/approve {ID} deny-always it leaks", Deny(ID, always=True, reason="it leaks")),
        (f"/deny {ID}", Deny(ID)),
        (f"/deny {ID}   too   wide ", Deny(ID, reason="too wide")),
        (f"/deny {ID} always", Deny(ID, always=True)),
        (f"/deny always {ID} it leaks", Deny(ID, always=True, reason="it leaks")),
        (f"/deny {ID} it always leaks", Deny(ID, reason="it always leaks")),
        (f"/deny {ID} use deadbeef instead", Deny(ID, reason="use deadbeef instead")),
        (f"/deny {ID} first\r\nsecond\nthird", Deny(ID, reason="first second third")),
        ("/pending", Pending()),
        ("/elevated", Elevated()),
        ("/elevated on and fix the disk", Elevated(Level.ON, once=True)),
        ("/elevated Full\nrestart nginx", Elevated(Level.FULL, once=True)),
        ("/elev off just look around", Elevated(Level.OFF, once=True)),
        ("/sayso bind agent:a:main", SaysoBind(SessionKey.main("a"))),
        ("/elev", Elevated()),
        ("/elevated on", Elevated(Level.ON)),
        ("/elev FULL for 2h", Elevated(Level.FULL, 2 * HOUR)),
        ("/elevated for 2h ask", Elevated(Level.ASK, 2 * HOUR)),
        ("/elevated off agent:main:main", Elevated(Level.OFF, None, SessionKey.main("main"))),
        ("/elevated agent:a:slack:U1 on", Elevated(Level.ON, None, SessionKey("a", "slack", "U1"))),
        ("/elevated agent:a:slack:U1", Elevated(None, None, SessionKey("a", "slack", "U1"))),
        ("/sayso", SaysoHelp()),
        ("/sayso help", SaysoHelp()),
        ("/sayso STATUS", SaysoStatus()),
        ("/sayso lock", SaysoLock()),
        ("/sayso unlock", SaysoUnlock()),
        ("/pair Ab_d-fGhIjK", Pair("Ab_d-fGhIjK")),
    ],
)
def test_a_command_is_read(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "//approve 7fa7f893",
        "approve 7fa7f893",
        "please /approve 7fa7f893",
        "yes\n/approve 7fa7f893",
        "> /approve 7fa7f893",
        "`/approve 7fa7f893`",
        "/approved 7fa7f893",
        "/approve_7fa7f893",
        "/approve-7fa7f893",
        "/approve:7fa7f893",
        "/approve\u200b 7fa7f893",
        "\u200b/approve 7fa7f893",
        "/approve\u00a07fa7f893",
        "/аpprove 7fa7f893",  # noqa: RUF001 - a Cyrillic letter
        "/approve 7fa7f893".replace("/", "\uff0f"),
        "/start",
        "/help",
        "/unlock",
    ],
)
def test_other_messages_are_none_of_ours(text: str) -> None:
    assert parse(text, bot="sayso_bot") is None


@pytest.mark.parametrize("bot", ["sayso_bot", "@sayso_bot", "Sayso_Bot"])
def test_a_command_may_be_addressed_to_us(bot: str) -> None:
    assert parse(f"/approve@Sayso_bot {ID} always", bot=bot) == Approve(ID, How.ALWAYS)
    assert parse(f"/approve {ID}", bot=bot) == Approve(ID)
    assert parse("/pending@sayso_bot", bot=bot) == Pending()


@pytest.mark.parametrize(
    "addressee", ["other_bot", "sayso_bo", "sayso_bot2", "sayso_bot@other", "", "sayso-bot"]
)
def test_a_command_to_another_bot_is_none_of_ours(addressee: str) -> None:
    assert parse(f"/approve@{addressee} {ID}", bot="sayso_bot") is None


def test_where_commands_are_not_addressed_an_addressed_one_is_not_ours() -> None:
    assert parse(f"/approve@sayso_bot {ID}", bot=None) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/approve", "The id of the question is missing"),
        ("/approve always", "id of the question is missing"),
        ("/approve 7fa7f89", "“7fa7f89” is too short for an id"),
        ("/approve 7fa7f89g", "“7fa7f89g” does not belong here"),
        ("/approve -7fa7f893", "does not belong here"),
        (f"/approve {FULL_ID}0", "does not belong here"),
        (f"/approve {ID} deadbeef", "“deadbeef” does not belong here"),
        (f"/approve {ID} please", "“please” does not belong here"),
        (f"/approve {ID} alway", "“alway” does not belong here"),
        (f"/approve {ID}, always", "does not belong here"),
        (f"/approve {ID} always once", "“once” does not belong here"),
        (f"/approve {ID} always for 30m", "“for” does not belong here"),
        (f"/approve always {ID} deny", "“deny” does not belong here"),
        (f"/approve {ID} for 30m deny", "“deny” does not belong here"),
        (f"/approve {ID} for", "`for` needs a time such as 30s, 30m, 2h or 1d after it"),
        (f"/approve {ID} for ever", "not “ever”"),
        (f"/approve {ID} for 30", "not “30”"),
        (f"/approve {ID} for 1h30m", "not “1h30m”"),
        (f"/approve {ID} for -30m", "not “-30m”"),
        (f"/approve {ID} for 0m", "0m is out of bounds: 10 s to 30 d"),
        (f"/approve {ID} for 9s", "out of bounds"),
        (f"/approve {ID} for 31d", "out of bounds"),
        (f"/approve {ID} for 9999999d", "not “9999999d”"),
        (f"/approve {ID} for \u0663\u0660m", "`for` needs a time"),
        (f"/approve {ID} 30m", "“30m” does not belong here"),
        (f"/approve {ID}\nalways", "one line"),
        (f"/approve\n{ID}", "one line"),
        ("/deny", "id of the question is missing"),
        ("/deny always", "id of the question is missing"),
        (f"/deny because {ID}", "“because” does not belong here"),
        (f"/deny\n{ID}", "id of the question is missing"),
        ("/pending all", "“all” does not belong here"),
        ("/elevated up", "“up” does not belong here"),
        ("/elevated on off", "“off” does not belong here"),
        ("/elevated on 30m", "“30m” does not belong here"),
        ("/elevated on for 30m and fix the disk", "“and” does not belong here"),
        ("/elevated on agent:a:main and fix the disk", "“and” does not belong here"),
        ("/elevated please fix the disk", "“please” does not belong here"),
        ("/elevated on for 30m\nfix the disk", "takes a level alone"),
        ("/sayso bind", "Name the session"),
        ("/sayso bind agent:a:main agent:b:main", "Name the session"),
        ("/sayso bind me", "no session key"),
        ("/elevated off for 2h", "A time goes with on, ask or full only"),
        ("/elevated for 2h", "A time goes with on, ask or full only"),
        ("/elevated on agent:main", "“agent:main” is no session key"),
        ("/elevated on agent:a:main agent:b:main", "“agent:b:main” does not belong here"),
        ("/sayso unlck", "“unlck” does not belong here"),
        ("/sayso lock now", "“now” does not belong here"),
        ("/sayso loc\u212a", "does not belong here"),
        ("/pair", "not a pairing code"),
        ("/pair abc", "not a pairing code"),
        ("/pair abcdefgh ijklmnop", "not a pairing code"),
    ],
)
def test_a_command_written_wrong_is_told_how_to_write_it(text: str, words: str) -> None:
    command = parse(text)
    assert isinstance(command, Malformed)
    assert words in command.text
    assert "Write /" in command.text


def test_a_code_typed_wrong_is_not_repeated() -> None:
    command = parse("/pair s3cret-c0de!")
    assert isinstance(command, Malformed)
    assert "s3cret" not in command.text


@pytest.mark.parametrize("hidden", HOSTILE, ids=ascii)
@pytest.mark.parametrize(
    "form", ["/approve {h}7fa7f893", "/approve 7fa7f893{h}", "/approve 7fa7f893 al{h}ways"]
)
def test_hidden_characters_around_an_approval_spoil_it(hidden: str, form: str) -> None:
    command = parse(form.replace("{h}", hidden))
    assert isinstance(command, Malformed)
    assert safe(command.text) == command.text


@pytest.mark.parametrize("hidden", HOSTILE, ids=ascii)
def test_a_reason_shows_what_was_hidden_in_it(hidden: str) -> None:
    command = parse(f"/deny {ID} be{hidden}fore")
    assert isinstance(command, Deny)
    assert command.reason is not None
    assert safe(command.reason) == command.reason
    assert command.reason.startswith("be")
    assert command.reason.endswith("fore")
    assert command.reason != "before"


def test_a_long_reason_keeps_head_and_tail_and_counts_the_gap() -> None:
    command = parse(f"/deny {ID} " + "a" * 400 + "b" * 10_000 + "c" * 100)
    assert isinstance(command, Deny)
    assert command.reason == "a" * 400 + " …[10,000 characters left out]… " + "c" * 100


@pytest.mark.parametrize("name", ["approve", "deny", "pending", "elevated", "sayso", "pair"])
def test_ten_kilobytes_of_anything_are_answered_briefly(name: str) -> None:
    for filler in ("x", "\u202e", "a b ", "\n", "a:", "9"):
        command = parse(f"/{name} " + filler * (10_000 // len(filler)))
        assert command is not None
        assert len(str(command)) < 1_000


def test_each_command_of_the_help_is_read() -> None:
    examples = [line.partition(":")[0] for line in HELP.splitlines() if line.startswith("/")]
    assert len(examples) == 14
    for example in examples:
        plain = example.replace("ID", ID).replace("CODE", "abcdefghijk").replace("SESSION", "agent:a:main")
        for unwanted in ("|ask|full|off", "[", "]"):
            plain = plain.replace(unwanted, "")
        command = parse(plain)
        assert command is not None, example
        assert not isinstance(command, Malformed), (example, command)


words = st.one_of(
    st.sampled_from(
        [ID, FULL_ID, "always", "once", "for", "30m", "deny", "on", "full", "off", "agent:main:main", "lock"]
    ),
    st.text(max_size=20),
    st.sampled_from(HOSTILE),
)
names = st.sampled_from(["approve", "deny", "pending", "elevated", "elev", "sayso", "pair", "Approve@bot"])
messages = st.builds(
    lambda name, rest, gap: f"/{name} " + gap.join(rest),
    names,
    st.lists(words, max_size=8),
    st.sampled_from([" ", "\n", "\t", "", "\u2028"]),
)


@given(st.one_of(st.text(max_size=200), messages, st.text(max_size=50).map("/approve ".__add__)))
def test_any_text_is_answered_and_what_it_says_is_safe_to_show(text: str) -> None:
    command = parse(text, bot="bot")
    shown = {Malformed: "text", Deny: "reason"}.get(type(command))
    said = (getattr(command, shown) if shown else None) or ""
    assert safe(said) == said


@given(messages)
def test_a_yes_consists_of_known_words_alone(text: str) -> None:
    command = parse(text, bot="bot")
    if isinstance(command, Approve):
        rest = text.partition(" ")[2].lower().split()
        assert command.id in rest
        assert set(rest) - {command.id} <= {"once", "always", "for", "30m"}
        assert (command.how is How.ALWAYS) == ("always" in rest)
        assert (command.for_ms is not None) == (command.how is How.FOR) == ("for" in rest)


@pytest.mark.parametrize("phrase", [("always",), ("for 30m",), ("once",)])
def test_words_may_stand_in_either_order(phrase: tuple[str, ...]) -> None:
    read = {parse("/approve " + " ".join(order)) for order in itertools.permutations((ID, *phrase))}
    assert len(read) == 1
    assert all(isinstance(command, Approve) for command in read)


@given(st.integers(0, 999_999), st.sampled_from("smhd"))
def test_a_time_is_within_bounds_or_refused(count: int, unit: str) -> None:
    command = parse(f"/approve {ID} for {count}{unit}")
    ms = count * {"s": 1_000, "m": 60_000, "h": HOUR, "d": 24 * HOUR}[unit]
    if SHORTEST_MS <= ms <= LONGEST_MS:
        assert command == Approve(ID, How.FOR, ms)
    else:
        assert isinstance(command, Malformed)
