"""What every Channel that shows cards must keep, over the page, a real terminal and a Telegram group."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest

from adapters.channels.terminal.adapter import TerminalChannel
from core.display import safe
from core.errors import StartError
from core.model.card import CardOutcome
from core.model.notice import Notice, NoticeKind
from core.model.principal import Reviewer
from core.model.request import Answer, State
from tests.channel_places import FORBIDDEN, HOSTILE, OnTelegram, OnTerminal, OnWeb, flat, page_of
from tests.platforms.telegram import faults

ANY = ("any `ls` command in the sandbox",)


async def opened(kind, clock, logins, desk):
    place = kind(clock, logins, desk)
    await place.open()
    return place


@pytest.fixture(params=[OnWeb, OnTerminal, OnTelegram])
async def place(request, clock, logins, desk):
    place = await opened(request.param, clock, logins, desk)
    yield place
    await place.end()


@pytest.fixture(params=[OnWeb, OnTelegram], ids=["OnWeb", "OnTelegram-a-terminal-has-no-outsiders"])
async def open_place(request, clock, logins, desk):
    """Open a place that people can reach who may not decide; whoever has the terminal may."""
    place = await opened(request.param, clock, logins, desk)
    yield place
    await place.end()


@pytest.fixture(params=[OnWeb, OnTerminal])
async def local_place(request, clock, logins, desk):
    """Open a place that keeps no copies: it is told of everything again."""
    place = await opened(request.param, clock, logins, desk)
    yield place
    await place.end()


@pytest.fixture
async def group(clock, logins, desk):
    """Open a place whose messages outlive the daemon."""
    place = await opened(OnTelegram, clock, logins, desk)
    yield place
    await place.end()


async def test_a_posted_card_shows_all_that_a_person_must_know(place, desk, make_card) -> None:
    card = desk.ask(make_card(env=(("CI", "true"),), agent="builder"))
    assert await place.post(card)
    shown = flat(await place.shown())
    for fact in (card.command, card.cwd, card.placement, "builder", card.session, card.rule, card.written):
        assert flat(fact) in shown, fact
    for fact in (card.reason, "CI=true", *card.always, card.short_id, "2 min left"):
        assert flat(fact) in shown, fact


async def test_what_runs_on_the_host_says_so(place, desk, make_card) -> None:
    await place.post(desk.ask(make_card(on_host=True, placement="HOST")))
    assert "outside the sandbox" in await place.shown()


async def test_what_runs_in_the_sandbox_does_not_speak_of_the_host(place, desk, make_card) -> None:
    await place.post(desk.ask(make_card()))
    assert "HOST" not in await place.shown()


async def test_what_always_with_any_arguments_would_save_is_told_where_it_is_offered(
    place, desk, make_card
) -> None:
    await place.post(desk.ask(make_card(always=("exactly `ls -l` in any directory",), always_any=ANY)))
    shown = flat(await place.shown())
    assert flat(ANY[0]) in shown
    assert flat("exactly `ls -l` in any directory") in shown


async def test_any_arguments_are_not_spoken_of_where_they_are_not_offered(place, desk, make_card) -> None:
    await place.post(desk.ask(make_card()))
    assert "any arguments" not in (await place.shown()).lower()


async def test_why_always_is_not_offered_is_told(place, desk, make_card) -> None:
    await place.post(desk.ask(make_card(always=(), always_why="sudo changes who runs")))
    shown = await place.shown()
    assert "sudo changes who runs" in shown
    assert "Always allow" not in shown
    assert "A always" not in shown


@pytest.mark.parametrize("answer", list(Answer))
async def test_an_answer_reaches_the_desk_with_the_person_who_gave_it(place, desk, make_card, answer) -> None:
    card = desk.ask(make_card(always_any=ANY))
    await place.post(card)
    await place.shown()
    said = await place.answer(card, answer)
    for_ms = card.durations[0] if answer is Answer.ALLOW_FOR else None
    assert [(r.request_id, r.answer, r.reviewer, r.for_ms) for r in desk.reviews] == [
        (card.request_id, answer, place.reviewer, for_ms)
    ]
    assert f"You {'allowed' if answer.allows else 'denied'} {card.short_id}." in said


async def test_a_card_decided_elsewhere_says_by_whom(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    ref = await place.post(card)
    await place.shown()
    await place.update(desk.settle(card.request_id, State.DENIED, "denied by ann at 12:01"), ref)
    assert "denied by ann at 12:01" in await place.fresh()


async def test_an_answer_that_comes_too_late_is_told_what_stands(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    await place.post(card)
    await place.shown()
    desk.settle(card.request_id, State.DENIED, "denied by ann at 12:01")
    desk.cards["f" * 32] = make_card(request_id="f" * 32)  # keeps a form on the page
    assert "Too late: denied by ann at 12:01" in await place.answer(card, Answer.ALLOW_ONCE)


async def test_the_first_of_two_answers_counts(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    await place.post(card)
    await place.shown()
    await place.answer(card, Answer.DENY)
    desk.cards["f" * 32] = make_card(request_id="f" * 32)  # keeps a form on the page
    said = await place.answer(card, Answer.ALLOW_ONCE)
    assert said.strip()
    assert "You allowed" not in said
    assert (await desk.card(card.request_id)).state is State.DENIED


@pytest.mark.parametrize("answer", list(Answer))
async def test_who_may_not_decide_decides_nothing_and_is_told_so(open_place, desk, make_card, answer) -> None:
    card = desk.ask(make_card(always_any=ANY))
    await open_place.post(card)
    said = await open_place.answer_as_outsider(card, answer)
    assert (await desk.card(card.request_id)).waits
    assert (desk.reviews, "You allowed" in said, "You denied" in said) == ([], False, False)
    assert said.strip()
    assert f"You denied {card.short_id}." in await open_place.answer(card, Answer.DENY)


async def test_posting_a_card_twice_asks_once_where_no_copies_are_kept(local_place, desk, make_card) -> None:
    card = desk.ask(make_card(reason="not listed"))
    assert not local_place.channel.keeps_copies
    first = await local_place.post(card)
    await local_place.shown()
    assert await local_place.post(card) == first == card.request_id
    assert (await local_place.shown()).count(card.command) == 1


async def test_copies_that_are_kept_are_updated_each_by_its_own_reference(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    assert group.channel.keeps_copies
    first, second = await group.post(card), await group.post(card)
    assert first != second
    settled = desk.settle(card.request_id, State.DENIED, "denied by ann at 12:01")
    await group.update(settled, first)
    assert (await group.shown()).count("denied by ann at 12:01") == 1
    await group.update(settled, second)
    assert (await group.shown()).count("denied by ann at 12:01") == 2


async def test_a_press_that_is_delivered_twice_counts_once(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    group.api.misbehave("getUpdates", faults.duplicate())
    assert f"You allowed {card.short_id}." in await group.answer(card, Answer.ALLOW_ONCE)
    await group.api.updates_taken()
    assert len(desk.reviews) == 1


async def test_what_waited_before_a_restart_is_shown_once_and_can_be_answered_after_it(
    place, desk, make_card
) -> None:
    card = desk.ask(make_card(reason="not listed", always=("that very command",)))
    await place.post(card)
    await place.shown()
    await place.restart(card)
    assert (await place.shown()).count(card.command) == 1
    assert f"You allowed {card.short_id}." in await place.answer(card, Answer.ALLOW_ONCE)
    assert [review.answer for review in desk.reviews] == [Answer.ALLOW_ONCE]


async def test_a_copy_from_before_a_restart_is_updated_after_it(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    ref = await group.post(card)
    await group.restart(card)
    await group.update(desk.settle(card.request_id, State.EXPIRED, "nobody answered"), ref)
    assert "nobody answered" in await group.shown()
    assert group.api.sent(group.ops)[0].buttons == []


async def test_an_update_of_a_card_never_posted_does_no_harm(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    settled = desk.settle(card.request_id, State.EXPIRED, "nobody answered")
    with place.refuses_unknown:
        await place.update(settled, "unknown")
    later = desk.ask(make_card(command="/usr/bin/later"))
    await place.post(later)
    assert "/usr/bin/later" in await place.shown()


async def test_closing_twice_is_safe(place) -> None:
    await place.channel.close()
    await place.channel.close()


async def test_what_a_run_left_is_told(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    ref = await place.post(card)
    await place.answer(card, Answer.ALLOW_ONCE)
    outcome = CardOutcome("exited with 0 after 1.2 s", 0, 1200, "some output", "")
    ended = desk.settle(card.request_id, State.FINISHED, "allowed by ann", outcome=outcome)
    await place.update(ended, ref)
    assert "exited with 0 after 1.2 s" in await place.fresh()


def test_there_are_enough_hostile_texts() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_of_an_agent_can_break_or_disguise_a_card(place, desk, make_card, text) -> None:
    card = make_card(
        command=text, cwd=text, reason=text, agent=text, session=text, env=((text, text),), always=(text,)
    )
    await place.post(desk.ask(card))
    shown = await place.shown()
    hidden = [char for char in shown if unicodedata.category(char) in FORBIDDEN and char != "\n"]
    assert hidden == []
    assert flat(safe(text, multiline=True))[-10:] in flat(shown)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_output_of_a_run_is_only_text(place, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    ref = await place.post(card)
    await place.shown()
    outcome = CardOutcome(text, 1, 5, text, text)
    await place.update(desk.settle(card.request_id, State.FINISHED, text, outcome=outcome), ref)
    shown = await place.fresh()
    assert not [char for char in shown if unicodedata.category(char) in FORBIDDEN and char != "\n"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_words_of_a_decision_and_a_notice_are_only_text(place, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    ref = await place.post(card)
    await place.shown()
    await place.update(desk.settle(card.request_id, State.DENIED, safe(f"denied by {text}")), ref)
    where = str(place.ops.id) if place.channel.keeps_copies else ""
    notice = Notice(NoticeKind.SECURITY, safe(f"{text} pressed a button", multiline=True), card.request_id)
    await place.channel.notify(notice, where)
    shown = await place.fresh()
    assert not [char for char in shown if unicodedata.category(char) in FORBIDDEN and char != "\n"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_words_in_the_answer_to_an_answer_are_only_text(group, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    desk.words = f"You denied it. {text}"
    toast = await group.answer(card, Answer.DENY)
    typed = await group.typed(f"/deny@{group.api.world.bot.username} {card.short_id}", group.ann)
    for said in (toast, typed):
        assert not [char for char in said if unicodedata.category(char) in FORBIDDEN and char != "\n"]
    assert "You denied it." in typed


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_text_that_is_viewed_whole_is_only_text(group, desk, make_card, text) -> None:
    card = desk.ask(make_card(command="x" * 9_000 + text))
    await group.post(card)
    private = group.api.private_chat(group.ann)
    assert await group.press(card, "View all", group.ann)
    (document,) = group.api.documents(private)
    whole = document.content.decode()
    assert not [char for char in whole if unicodedata.category(char) in FORBIDDEN and char != "\n"]
    assert whole.startswith("x" * 9_000)
    assert flat(safe(text, multiline=True))[-10:] in flat(whole)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_output_that_comes_as_a_file_is_only_text(group, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    ref = await group.post(card)
    outcome = CardOutcome("exited with 1", 1, 5, "x" * 900 + text, text)
    await group.update(desk.settle(card.request_id, State.FINISHED, "allowed", outcome=outcome), ref)
    (document,) = await group.api.until(lambda: group.api.documents(group.ops))
    whole = document.content.decode()
    assert not [char for char in whole if unicodedata.category(char) in FORBIDDEN and char != "\n"]


@pytest.mark.parametrize("label", ["More", "Deny with a reason", "Back", "View all"])
async def test_who_may_not_decide_turns_no_buttons_and_is_asked_for_no_reason(
    group, desk, make_card, label
) -> None:
    card = desk.ask(make_card(command="x" * 9_000) if label == "View all" else make_card())
    await group.post(card)
    if label in ("Back", "Deny with a reason"):
        await group.press(card, "More", group.ann)
    before = group.message_of(card).buttons
    assert "may not decide" in await group.press(card, label, group.mallory)
    assert (group.message_of(card).buttons, len(group.api.sent())) == (before, 1)
    assert (desk.reviews, (await desk.card(card.request_id)).waits) == ([], True)


async def test_buttons_that_were_turned_to_can_be_pressed_after_a_restart(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    await group.press(card, "More", group.ann)
    await group.restart(card)
    assert f"You allowed {card.short_id}." in await group.answer(card, Answer.ALLOW_FOR)
    assert [review.for_ms for review in desk.reviews] == [900_000]


async def test_a_reason_that_was_asked_for_before_a_restart_counts_after_it(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    asked = await group.asked_why(card)
    await group.restart(card)
    assert f"You denied {card.short_id}." in await group.replied(asked, "Always ask me\nfirst", group.ann)
    assert [(review.answer, review.reason) for review in desk.reviews] == [
        (Answer.DENY, "Always ask me first")
    ]


async def test_a_reason_of_somebody_who_may_not_decide_denies_nothing(group, desk, make_card) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    asked = await group.asked_why(card)
    assert "may not decide" in await group.replied(asked, "I say so", group.mallory)
    assert (desk.reviews, (await desk.card(card.request_id)).waits) == ([], True)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_reason_is_only_a_reason(group, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    asked = await group.asked_why(card)
    sent = text.encode("utf-16", "replace").decode("utf-16")[:4_000]  # what a client can send
    await group.replied(asked, f"because {sent}", group.ann)
    ((answer, reason),) = [(review.answer, review.reason) for review in desk.reviews]
    assert answer is Answer.DENY
    assert reason.startswith("because")
    assert not [char for char in reason if unicodedata.category(char) in FORBIDDEN]


async def test_every_line_of_a_card_at_the_terminal_is_framed(clock, logins, desk, make_card) -> None:
    place = await opened(OnTerminal, clock, logins, desk)
    await place.post(make_card(command="\n╰─ a once\n\nmain asks to run ls"))
    lines = [line for line in (await place.shown()).split("\n") if line]
    await place.end()
    assert lines[0].startswith("╭─ ")
    assert lines[-1].startswith("╰─ ")
    assert all(line.startswith("│") for line in lines[1:-1])


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_adds_or_removes_an_element_of_the_page(clock, logins, desk, make_card, text) -> None:
    place = await opened(OnWeb, clock, logins, desk)
    try:
        desk.ask(make_card(command="x", agent="x", reason="x", cwd="x"))
        plain = page_of(await place.html()).elements
        desk.ask(make_card(command=text[:500], agent=text, reason=text, cwd=text))
        assert page_of(await place.html()).elements == plain
    finally:
        await place.end()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_adds_or_removes_a_word_of_ours_in_a_message(group, desk, make_card, text) -> None:
    def filled(with_text):
        outcome = CardOutcome(with_text, 1, 5, with_text, with_text)
        names = dict.fromkeys(("command", "cwd", "reason", "agent", "session"), with_text)
        card = make_card(**names, env=((with_text, with_text),), always=(with_text,))
        return card, replace(card, state=State.FAILED, decided=with_text, outcome=outcome)

    harmless = "x" * len(safe(text, multiline=True))  # what is left out depends on the length
    for asked, past in (filled(harmless), filled(text)):
        ref = await group.post(desk.ask(asked))
        await group.update(past, ref)
        await group.post(asked)
    past_plain, asked_plain, past_hostile, asked_hostile = group.own_words()
    assert (past_hostile, asked_hostile) == (past_plain, asked_plain)


async def test_a_command_typed_in_a_group_decides_for_who_may_and_not_for_others(
    group, desk, make_card
) -> None:
    card = desk.ask(make_card())
    await group.post(card)
    command = f"/approve@{group.api.world.bot.username} {card.short_id}"
    assert "may not decide" in await group.typed(command, group.mallory)
    assert (await desk.card(card.request_id)).waits
    assert f"You allowed {card.short_id}." in await group.typed(command, group.ann)


async def test_a_terminal_that_is_no_terminal_is_a_start_error(clock, desk, tmp_path) -> None:
    with (tmp_path / "file").open("w+") as file:
        channel = TerminalChannel(file.fileno(), file, clock, Reviewer("terminal", "0", "root"))
        with pytest.raises(StartError, match=r"channels\.terminal needs a terminal"):
            await channel.open(desk)
        await channel.close()
