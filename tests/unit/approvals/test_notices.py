"""What people are told of a change, in what words, and where; and how much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.approvals import lifecycle
from core.approvals.herald import MOST_IN_WINDOW, MOST_WINDOWS, WINDOW_MS, Addresses, Measure
from core.approvals.notices import (
    Spot,
    channel_notice,
    cut_off_notice,
    cut_off_text,
    destinations,
    elsewhere,
    notices_for,
    reminder,
    repeats,
    security_notice,
    summed_up,
)
from core.config import NoticeSettings
from core.model.card import Mark
from core.model.notice import NoticeKind
from core.model.plan import RunResult, RunStatus
from core.model.principal import Reviewer
from core.model.request import Answer, AuditEvent, Change, Copy, Review, State
from core.model.session import SessionKey

ALL = NoticeSettings(asked_elsewhere=True, finished=True)
ALICE = Reviewer("telegram", "111", "Alice")
DENIAL = {"reason": "rm is forbidden", "rule": "tools.deny", "where": "tools.deny[0] (config.yaml, line 3)"}
OWN = Spot("telegram", "-100")
OPS = Spot("telegram", "-900")
HOSTILE = "evil\u202egnp.exe\n@everyone\u200b \x1b[2J"


@pytest.fixture
def request_of(make_request):
    def make(**fields):
        copies = (Copy("telegram", "-100", "n1"), Copy("web", "", "n2"))
        return replace(make_request(verdict={"effect": "deny", **DENIAL}), copies=copies, **fields)

    return make


@pytest.fixture
def changes(request_of):
    """Every step a request can take, by name."""
    waiting = request_of()
    running = request_of(state=State.RUNNING)
    result = RunResult(RunStatus.FINISHED, 3, "out", "", 0, 0, 4_200)
    return {
        "refused": lifecycle.refused(waiting, 5),
        "denied": lifecycle.reviewed(waiting, Review(waiting.id, Answer.DENY, ALICE, "not today"), 5),
        "mismatched": lifecycle.mismatched(running, "the program changed", 5),
        "asked": lifecycle.asked(waiting, 5),
        "finished": lifecycle.finished(running, result, 5),
        "failed": lifecycle.failed(running, "no sandbox", 5),
        "interrupted": lifecycle.interrupted(running, "the daemon ended", 5),
        "allowed": lifecycle.allowed(waiting, 5),
        "approved": lifecycle.reviewed(waiting, Review(waiting.id, Answer.ALLOW_ONCE, ALICE), 5),
        "expired": lifecycle.expired(waiting, 5),
        "withdrawn": lifecycle.withdrawn(waiting, 5),
        "used": lifecycle.used(request_of(state=State.APPROVED), 5),
    }


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("refused", NoticeKind.DENIED),
        ("denied", NoticeKind.DENIED),
        ("mismatched", NoticeKind.DENIED),
        ("asked", NoticeKind.ASKED_ELSEWHERE),
        ("finished", NoticeKind.FINISHED),
        ("failed", NoticeKind.FINISHED),
        ("interrupted", NoticeKind.FINISHED),
    ],
)
def test_a_step_is_told_of_as_its_kind_and_not_where_that_is_off(changes, step, kind):
    (notice,) = notices_for(changes[step], ALL)
    assert (notice.kind, notice.request_id) == (kind, changes[step].request.id)
    assert 1 <= len(notice.text.splitlines()) <= 4
    off = ALL.model_copy(update={kind.name.lower(): False})
    assert notices_for(changes[step], off) == ()


@pytest.mark.parametrize("step", ["allowed", "approved", "expired", "withdrawn", "used"])
def test_other_steps_are_not_told_of(changes, step):
    assert notices_for(changes[step], ALL) == ()


def test_what_is_noisy_is_off_until_it_is_turned_on(changes):
    told = {step for step, change in changes.items() if notices_for(change, NoticeSettings())}
    assert told == {"refused", "denied", "mismatched"}


def test_a_denial_by_policy_says_why_what_and_by_which_rule(changes):
    (notice,) = notices_for(changes["refused"], ALL)
    assert notice.text.splitlines() == [
        "Denied: rm is forbidden",
        "Session: agent:main:main",
        "Command: /usr/bin/rm -rf build",
        "Rule: tools.deny (tools.deny[0] (config.yaml, line 3))",
    ]


def test_a_denial_by_a_person_names_them_and_no_rule(changes):
    (notice,) = notices_for(changes["denied"], ALL)
    assert notice.text.startswith("Denied by ")
    assert "not today" in notice.text.splitlines()[0]
    assert "Rule" not in notice.text


def test_what_changed_after_the_yes_is_the_reason_of_that_denial(changes):
    (notice,) = notices_for(changes["mismatched"], ALL)
    assert notice.text.startswith("Denied: the program changed\n")


def test_the_end_of_a_run_has_its_status_and_its_duration(changes):
    (notice,) = notices_for(changes["finished"], ALL)
    assert notice.text.startswith("Run finished with status 3 after 4.2 s\n")
    (notice,) = notices_for(changes["failed"], ALL)
    assert notice.text.startswith("Run failed: no sandbox\n")


def test_asked_elsewhere_names_channels_and_no_places(changes):
    (notice,) = notices_for(changes["asked"], ALL)
    assert notice.text.startswith("Asked elsewhere: telegram, web\n")
    assert "-100" not in notice.text


def test_hostile_text_stays_in_its_line_and_shows_what_it_is(request_of):
    verdict = dict.fromkeys(("reason", "rule", "where"), HOSTILE)
    request = request_of(canonical=HOSTILE * 100, verdict=verdict)
    (notice,) = notices_for(lifecycle.refused(request, 5), ALL)
    assert len(notice.text.splitlines()) == 4
    assert not {"\u202e", "\u200b", "\x1b", "\r"} & set(notice.text)
    assert "characters left out" in notice.text
    assert len(notice.text) < 1_200


def test_secrets_are_masked_also_across_the_cut(request_of):
    secret = "hunter2-" * 40
    request = request_of(canonical="x" * 150 + secret, verdict={"reason": f"has {secret}"})
    (notice,) = notices_for(lifecycle.refused(request, 5), ALL, (secret,))
    assert "hunter" not in notice.text
    assert notices_for(lifecycle.refused(request, 5), ALL)[0].text.count("hunter") > 1


def event(kind="security.outsider", **data):
    return AuditEvent(5, kind, "person:telegram:666", "11111111-aaaa", {"name": "Mal", "place": "-1", **data})


def test_a_security_event_says_who_and_where():
    notice = security_notice(event(), ALL)
    assert notice.kind is NoticeKind.SECURITY
    assert notice.text.splitlines() == [
        "Somebody who may not decide here tried to (security.outsider)",
        "Who: Mal (person:telegram:666)",
        "Where: -1",
    ]


def test_a_security_event_of_a_kind_without_words_is_told_all_the_same():
    assert "(security.new)" in security_notice(event("security.new"), ALL).text


def test_a_run_that_was_killed_because_its_files_changed_is_a_security_event_and_no_other_end(request_of):
    running = request_of(state=State.RUNNING)
    killed = RunResult(
        RunStatus.FINISHED, 137, "", "", 0, 0, 5, notes=("it was killed, because x",), tampered=True
    )
    ends = [lifecycle.finished(running, result, 5) for result in (killed, replace(killed, tampered=False))]
    told, untold = (notices_for(end, ALL) for end in ends)
    assert [notice.kind for notice in told] == [NoticeKind.SECURITY, NoticeKind.FINISHED]
    assert "What: it was killed, because x" in told[0].text
    assert [notice.kind for notice in untold] == [NoticeKind.FINISHED]


def test_a_reminder_says_what_nobody_may_overlook(make_card):
    marks = (Mark("UNPROTECTED", "why"),)
    assert "HOST · UNPROTECTED" in reminder(make_card(on_host=True, marks=marks), 0).text
    assert "HOST" not in reminder(make_card(), 0).text


def test_no_other_event_is_a_security_event():
    assert security_notice(event("securityx.outsider"), ALL) is None
    assert security_notice(event("approval.denied"), ALL) is None


def test_security_events_can_be_switched_off():
    assert security_notice(event(), NoticeSettings(security=False)) is None


def test_an_outsider_cannot_forge_lines_by_their_name():
    notice = security_notice(event(name="Mal\nWhere: nowhere"), ALL)
    assert len(notice.text.splitlines()) == 3


def test_a_security_event_within_a_change_is_told_of_too(request_of):
    change = Change(request_of(), events=(event("security.replayed"),))
    assert [notice.kind for notice in notices_for(change, ALL)] == [NoticeKind.SECURITY]


def trouble(kind="channel.failed", **data):
    data = {"channel": "telegram", "state": "down", "words": "revoked: no such bot", "since": 0, **data}
    return AuditEvent(5, kind, "channel:telegram", None, data)


class TestChannelNotices:
    def test_a_channel_that_was_given_up_is_told_of_with_the_next_step(self):
        notice = channel_notice(trouble(), ALL)
        assert (notice.kind, notice.request_id) == (NoticeKind.CHANNEL, None)
        assert notice.text.splitlines() == [
            "Telegram does not work since 1970-01-01 00:00:00 UTC",
            "Why: revoked: no such bot",
            "Next: put this right and restart Sayso; until then nobody is asked there",
        ]

    def test_an_outage_says_that_sayso_tries_again_and_where_to_answer_meanwhile(self):
        first, _, last = channel_notice(trouble(state="degraded"), ALL).text.splitlines()
        assert first == "Telegram has been in trouble since 1970-01-01 00:00:00 UTC"
        assert "tries again by itself" in last
        assert "restart" not in last

    def test_an_end_of_trouble_is_one_line(self):
        (line,) = channel_notice(trouble("channel.recovered", state="ok"), ALL).text.splitlines()
        assert line == "Telegram works again; it had been in trouble since 1970-01-01 00:00:00 UTC"

    @pytest.mark.parametrize("kind", ["channel.failed", "channel.recovered"])
    def test_the_switch_turns_both_off_and_on_is_its_default(self, kind):
        assert channel_notice(trouble(kind), NoticeSettings()) is not None
        assert channel_notice(trouble(kind), NoticeSettings(channel=False)) is None

    @pytest.mark.parametrize(
        "kind", ["channel.opened", "channel.failedx", "security.outsider", "daemon.started"]
    )
    def test_no_other_event_is_one_of_a_channel(self, kind):
        assert channel_notice(trouble(kind), ALL) is None

    def test_the_words_of_a_platform_stay_in_their_line_bounded_and_without_secrets(self):
        notice = channel_notice(trouble(words=f"{HOSTILE} hunter2 " + HOSTILE * 100), ALL, ("hunter2",))
        assert len(notice.text.splitlines()) == 3
        assert not {"\u202e", "\u200b", "\x1b", "\r"} & set(notice.text)
        assert "hunter2" not in notice.text
        assert len(notice.text) < 700


def cut_off(runs=(), waiting=(), over=(), last=1_000, **fields):
    data = {
        "last": last,
        "runs": [{"id": each, "command": fields.get("command", "ls")} for each in runs],
        "waiting": [*waiting],
        "over": [*over],
    }
    return AuditEvent(61_000, fields.get("kind", "daemon.cut-off"), "daemon", None, data)


class TestCutOff:
    def test_it_says_when_and_names_what_ended_and_what_waits(self):
        lines = cut_off_text(cut_off(["a" * 32], ["b" * 32, "c" * 32], ["d" * 32])).splitlines()
        assert lines[1:-1] == [
            "When: after 1970-01-01 00:00:01 UTC, when it last recorded something",
            "Back since: 1970-01-01 00:01:01 UTC",
            "Runs that ended with it, and are not repeated: aaaaaaaa (ls)",
            "Questions that still wait: bbbbbbbb, cccccccc",
            "Questions whose time ran out meanwhile: dddddddd",
        ]

    def test_what_is_not_known_or_was_not_there_takes_no_line_that_says_more(self):
        text = cut_off_text(cut_off(last=None))
        assert "When" not in text
        assert "meanwhile" not in text
        assert text.count(": none") == 2

    def test_many_are_counted_and_hostile_commands_stay_in_their_line_without_secrets(self):
        event = cut_off([f"{n:032x}" for n in range(500)], command=f"hunter2 {HOSTILE}\n" * 50)
        text = cut_off_text(event, ("hunter2",))
        assert "and 490 more" in text
        assert len(text.splitlines()) == 6
        assert "hunter2" not in text
        assert len(text) < 5_000

    def test_the_switch_of_security_turns_it_off_and_no_other_event_is_one(self):
        assert cut_off_notice(cut_off(), NoticeSettings()).kind is NoticeKind.SECURITY
        assert cut_off_notice(cut_off(), NoticeSettings(security=False)) is None
        assert cut_off_notice(cut_off(kind="daemon.started"), ALL) is None


class TestElsewhere:
    OPENED = ("web", "terminal", "telegram", "slack")
    ASKED = (Spot("web", ""), Spot("terminal", ""), Spot("telegram", "-100"), Spot("slack", "C1"))
    SLACK = Spot("slack", "C9")

    def test_each_other_channel_is_told_at_its_targets_or_where_it_asks(self):
        spots = elsewhere("telegram", self.OPENED, (OPS, self.SLACK, self.SLACK), self.ASKED)
        assert spots == (Spot("web", ""), Spot("terminal", ""), self.SLACK)

    def test_without_targets_it_is_told_where_the_others_ask(self):
        assert elsewhere("telegram", self.OPENED, (), self.ASKED) == (
            Spot("web", ""),
            Spot("terminal", ""),
            Spot("slack", "C1"),
        )

    def test_a_channel_that_is_not_open_is_not_written_to(self):
        assert elsewhere("telegram", ("web", "telegram"), (self.SLACK,), self.ASKED) == (Spot("web", ""),)

    def test_the_only_channel_is_told_nothing(self):
        assert elsewhere("telegram", ("telegram",), (OPS,), self.ASKED) == ()


class TestDestinations:
    def test_the_sessions_own_chat_and_the_targets_each_once(self, changes):
        request = changes["refused"].request
        assert destinations(NoticeKind.DENIED, request, OWN, (OPS, OWN)) == (OWN, OPS)

    def test_without_a_chat_or_a_target_nowhere(self, changes):
        for kind in NoticeKind:
            assert destinations(kind, changes["refused"].request, None, ()) == ()

    def test_what_belongs_to_no_request_goes_to_the_targets_alone(self):
        assert destinations(NoticeKind.SECURITY, None, OWN, (OPS,)) == (OPS,)

    def test_a_persons_no_is_not_repeated_under_its_own_card(self, changes):
        request = changes["denied"].request
        assert destinations(NoticeKind.DENIED, request, OWN, (OPS,)) == (OPS,)

    def test_a_yes_overruled_later_is_told_under_its_card_too(self, changes):
        request = changes["mismatched"].request
        assert destinations(NoticeKind.DENIED, request, OWN, (OPS,)) == (OWN, OPS)

    def test_asked_elsewhere_goes_to_the_own_chat_where_it_was_not_asked(self, changes):
        request = changes["asked"].request
        elsewhere = Spot("telegram", "-7")
        assert destinations(NoticeKind.ASKED_ELSEWHERE, request, elsewhere, (OPS,)) == (elsewhere,)
        assert destinations(NoticeKind.ASKED_ELSEWHERE, request, OWN, (OPS,)) == ()
        assert destinations(NoticeKind.ASKED_ELSEWHERE, request, None, (OPS,)) == ()


def only_digits(_channel, to):
    if not to.removeprefix("-").isdigit():
        raise ValueError(to)
    return to


class TestAddresses:
    addresses = Addresses(("web", "terminal", "telegram"), only_digits, lambda: {("telegram", "7")})

    def test_a_session_has_the_chat_in_its_key(self):
        assert self.addresses.own(SessionKey("main", "telegram", "7")) == Spot("telegram", "7")

    @pytest.mark.parametrize(
        "session",
        [
            SessionKey("main"),
            SessionKey("main", "discord", "7"),
            SessionKey("main", "telegram", "seven"),
            SessionKey("main", "telegram", "8"),  # a chat that the operator did not name
            SessionKey("main", "terminal", "7"),
        ],
    )
    def test_others_have_none(self, session):
        assert self.addresses.own(session) is None

    def test_people_are_asked_on_the_page_the_terminal_and_in_chats_that_were_named(self):
        named = {("telegram", "8"), ("telegram", "7"), ("terminal", "me"), ("web", "x")}
        assert Addresses((), only_digits, lambda: named).asked() == (
            Spot("web", ""),
            Spot("terminal", ""),
            Spot("telegram", "7"),
            Spot("telegram", "8"),
        )

    def test_the_terminal_can_be_a_target_and_has_one_place(self):
        assert self.addresses.spot("terminal", "me") == Spot("terminal", "")


class TestMeasure:
    def test_the_same_news_counts_once_a_minute(self):
        measure = Measure()
        assert [measure.is_news(("a",), now) for now in (0, 1, WINDOW_MS - 1, WINDOW_MS)] == [
            True,
            False,
            False,
            True,
        ]
        assert measure.is_news(("b",), 1)

    def test_what_is_too_much_is_counted_and_summed_up_once(self):
        measure = Measure()
        told = [measure.admits(OPS, NoticeKind.DENIED, 0) for _ in range(MOST_IN_WINDOW + 12)]
        assert told == [True] * MOST_IN_WINDOW + [False] * 12
        assert list(measure.ended(WINDOW_MS - 1)) == []
        (((spot, notice)),) = measure.ended(WINDOW_MS)
        assert (spot, notice.text) == (OPS, "12 more denials in the last minute")
        assert list(measure.ended(WINDOW_MS)) == []
        assert measure.admits(OPS, NoticeKind.DENIED, WINDOW_MS)

    def test_a_window_with_nothing_held_back_ends_silently(self):
        measure = Measure()
        measure.admits(OPS, NoticeKind.DENIED, 0)
        assert list(measure.ended(WINDOW_MS)) == []
        assert measure.next_end() is None

    def test_many_denials_do_not_hide_a_security_event_nor_another_place(self):
        measure = Measure()
        for _ in range(MOST_IN_WINDOW + 1):
            measure.admits(OPS, NoticeKind.DENIED, 0)
        assert measure.admits(OPS, NoticeKind.SECURITY, 0)
        assert measure.admits(OWN, NoticeKind.DENIED, 0)

    def test_chats_without_number_are_not_reached(self):
        measure = Measure()
        spots = [Spot("telegram", str(number)) for number in range(MOST_WINDOWS + 5)]
        told = [measure.admits(spot, NoticeKind.DENIED, 0) for spot in spots]
        assert told.count(True) == MOST_WINDOWS

    def test_a_clock_set_back_silences_nobody(self):
        measure = Measure()
        for _ in range(MOST_IN_WINDOW + 1):
            measure.admits(OPS, NoticeKind.DENIED, 9_000_000)
        assert len(list(measure.ended(0))) == 1
        assert measure.is_news(("a",), 9_000_000)
        assert measure.is_news(("a",), 0)


def test_one_is_not_written_as_many():
    assert summed_up(NoticeKind.SECURITY, 1).text == "1 more security event in the last minute"


def test_denials_repeat_by_session_rule_and_command_whatever_their_id(changes):
    (notice,) = notices_for(changes["refused"], ALL)
    request = changes["refused"].request
    again = replace(request, id="22222222-aaaa")
    (second,) = notices_for(Change(again), ALL)
    assert repeats(notice, request) == repeats(second, again)
    for other in (
        replace(again, canonical="/usr/bin/rm -rf src"),
        replace(again, verdict={**again.verdict, "rule": "exec.deny"}),
        replace(again, call=replace(again.call, session=SessionKey.main("other"))),
    ):
        (third,) = notices_for(Change(other), ALL)
        assert repeats(third, other) != repeats(notice, request)
