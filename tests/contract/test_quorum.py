"""Several people must say yes: over a real store, at the desk where all answers arrive."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_said

from adapters.stores.sqlite import open_store
from bot import registry
from core.approvals.entry_rows import kept_row
from core.approvals.ledger import Ledger
from core.approvals.permissions import Permissions
from core.approvals.quorum import People
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.approvals.service import Approvals
from core.approvals.standing import permitting
from core.elevated.authority import Authority
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.decision import Decision, Effect, Layer, Obligation
from core.model.outcome import Status
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, MessageKind, Review, State
from core.model.session import SessionKey
from tests.keeper import deadlines_pass

PEOPLE = People.named(
    {"Ann": ("telegram:111", "web:operator", "cli:0"), "Bea": ("telegram:222",), "Cem": ("telegram:333",)},
    registry.whose_chat,
)
ANN = Reviewer("telegram", "111", "ann123")
ANN_AT_THE_PAGE = Reviewer("web", "operator", "operator")
ANN_AT_THE_COMMAND_LINE = Reviewer("cli", "0", "root")
BEA = Reviewer("telegram", "222", "bea")
STRANGER = Reviewer("telegram", "999", "Bea")
ROUTES = (
    Route("web", "", (), 120_000, "test"),
    Route("telegram", "-100", ("telegram:111", "telegram:222", "telegram:999"), 120_000, "test"),
)


class Desk:
    """Approvals with rules that a test may change."""

    def __init__(self, store, clock, rules):
        self.store, self.clock, self.rules, self.routes = store, clock, rules, ROUTES
        self.ledger = Ledger(store)
        self.approvals = Approvals(
            self.ledger, store, clock, lambda _request: self.routes, (), lambda: self.rules
        )

    async def says(self, request, who, answer=Answer.ALLOW_ONCE, **fields):
        return await self.approvals.review(Review(request.id, answer, who, **fields))

    async def state(self, request):
        return (await self.store.request(request.id)).state


@pytest.fixture
async def desk(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        yield Desk(store, clock, Rules(PEOPLE, required=2))


async def test_two_people_make_a_yes_and_the_second_one_starts_it(desk, make_request):
    request = await desk.approvals.ask(make_request())
    first = await desk.says(request, ANN)
    assert first.accepted
    assert "1 of 2: Ann (telegram:111) allowed once" in first.text
    assert await desk.state(request) is State.WAITING
    second = await desk.says(request, BEA)
    assert second.text == "Allowed once by Ann (telegram:111) and Bea (telegram:222)"
    assert await desk.state(request) is State.APPROVED


@pytest.mark.parametrize("again", [ANN, ANN_AT_THE_PAGE, ANN_AT_THE_COMMAND_LINE])
async def test_the_same_person_counts_once_wherever_they_answer(desk, make_request, again):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    assert (await desk.says(request, again, Answer.ALLOW_ALWAYS)).accepted
    assert await desk.state(request) is State.WAITING


async def test_the_same_yes_again_stands_and_adds_nothing(desk, make_request):
    request = await desk.approvals.ask(make_request())
    for _ in range(5):
        assert "1 of 2" in (await desk.says(request, ANN)).text
    assert len((await desk.store.request(request.id)).reviews) == 1


async def test_a_yes_of_somebody_whom_people_does_not_name_does_not_count_but_their_no_does(
    desk, make_request
):
    request = await desk.approvals.ask(make_request())
    refused = await desk.says(request, STRANGER)
    assert not refused.accepted
    assert "not under people" in refused.text
    assert (await desk.store.request(request.id)).reviews == ()
    assert (await desk.says(request, STRANGER, Answer.DENY)).accepted
    assert await desk.state(request) is State.DENIED


async def test_what_a_platform_calls_somebody_makes_nobody_a_person(desk, make_request):
    request = await desk.approvals.ask(make_request())
    forged = Reviewer("telegram", "999", "Bea", person="Bea")
    assert not (await desk.says(request, forged)).accepted


async def test_one_no_ends_it_whatever_was_said_before(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN, Answer.ALLOW_ALWAYS)
    denied = await desk.says(request, BEA, Answer.DENY, reason="not on a Friday")
    assert "Denied by Bea (telegram:222): not on a Friday" in denied.text
    late = await desk.says(request, Reviewer("telegram", "333", "cem"))
    assert not late.accepted
    assert await desk.state(request) is State.DENIED
    assert await desk.store.learned("main") == ()


async def test_a_person_may_take_their_own_yes_back_by_a_no(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    assert (await desk.says(request, ANN_AT_THE_PAGE, Answer.DENY)).accepted
    assert await desk.state(request) is State.DENIED


MINUTES = 60_000


@pytest.mark.parametrize(
    ("first", "second", "decision", "for_ms", "uses"),
    [
        ((Answer.ALLOW_ALWAYS, None, None), (Answer.ALLOW_ONCE, None, None), "allow-once", None, None),
        (
            (Answer.ALLOW_ALWAYS, None, None),
            (Answer.ALLOW_FOR, 15 * MINUTES, 3),
            "allow-for",
            15 * MINUTES,
            3,
        ),
        (
            (Answer.ALLOW_FOR, 60 * MINUTES, 2),
            (Answer.ALLOW_FOR, 15 * MINUTES, 9),
            "allow-for",
            15 * MINUTES,
            2,
        ),
        ((Answer.ALLOW_FOR, 60 * MINUTES, None), (Answer.ALLOW_ONCE, None, None), "allow-once", None, None),
        ((Answer.ALLOW_ALWAYS, None, None), (Answer.ALLOW_ALWAYS, None, None), "allow-always", None, None),
    ],
)
async def test_the_narrowest_answer_is_what_is_allowed(
    desk, make_request, first, second, decision, for_ms, uses
):
    request = await desk.approvals.ask(make_request())
    for who, (answer, ms, most) in ((ANN, first), (BEA, second)):
        assert (await desk.says(request, who, answer, for_ms=ms, max_uses=most)).accepted
    kept = await desk.store.request(request.id)
    assert kept.resolution.decision == decision
    permissions = await desk.store.permissions(desk.clock.now())
    assert [(p.expires_at - p.given_at, p.max_uses) for p in permissions] == (
        [(for_ms, uses)] if for_ms else []
    )
    assert bool(await desk.store.learned("main")) == (decision == "allow-always")


LS = AllowlistEntry("/usr/bin/ls", ("-l",), real_path="/usr/bin/ls", agent="main")
ANY_LS = replace_said(LS, args=None, any_arguments=True)
READING = AlwaysOffer((LS,), ("exactly `ls -l` in any directory",), None, (ANY_LS,), ("any `ls` command",))


@pytest.mark.parametrize(
    ("first", "second", "decision", "left"),
    [
        (Answer.ALLOW_ALWAYS, Answer.ALLOW_ALWAYS_ANY, "allow-always", (LS,)),
        (Answer.ALLOW_ALWAYS_ANY, Answer.ALLOW_ALWAYS, "allow-always", (LS,)),
        (Answer.ALLOW_ALWAYS_ANY, Answer.ALLOW_ALWAYS_ANY, "allow-always-any", (ANY_LS,)),
        (Answer.ALLOW_ALWAYS_ANY, Answer.ALLOW_ONCE, "allow-once", ()),
    ],
)
async def test_any_arguments_are_remembered_only_if_all_said_so(
    desk, make_request, first, second, decision, left
):
    request = await desk.approvals.ask(replace(make_request(), always=READING))
    for who, answer in ((ANN, first), (BEA, second)):
        assert (await desk.says(request, who, answer)).accepted
    assert (await desk.store.request(request.id)).resolution.decision == decision
    assert await desk.store.learned("main") == left


async def test_of_any_arguments_and_a_time_the_time_is_left(desk, make_request):
    request = await desk.approvals.ask(replace(make_request(), always=READING))
    await desk.says(request, ANN, Answer.ALLOW_ALWAYS_ANY)
    await desk.says(request, BEA, Answer.ALLOW_FOR, for_ms=15 * MINUTES)
    assert (await desk.store.request(request.id)).resolution.decision == "allow-for"
    assert await desk.store.learned("main") == ()


async def test_the_last_answer_of_a_person_is_theirs(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN, Answer.ALLOW_ALWAYS)
    await desk.says(request, ANN, Answer.ALLOW_ONCE)
    await desk.says(request, BEA, Answer.ALLOW_ALWAYS)
    assert (await desk.store.request(request.id)).resolution.decision == "allow-once"


async def test_answers_outlive_a_restart(tmp_path, clock, make_request):
    async with open_store(tmp_path / "again.db") as store:
        first = Desk(store, clock, Rules(PEOPLE, required=2))
        request = await first.approvals.ask(make_request())
        await first.says(request, ANN)
    async with open_store(tmp_path / "again.db") as store:
        second = Desk(store, clock, Rules(PEOPLE, required=2))
        await second.approvals.recover()
        assert "1 of 2: Ann" in (await second.approvals.card(request.id)).progress
        await second.says(request, BEA)
        assert await second.state(request) is State.APPROVED


async def test_what_was_required_when_it_was_asked_stays_required(desk, make_request):
    request = await desk.approvals.ask(make_request())
    desk.rules = Rules(PEOPLE, required=1)
    await desk.says(request, ANN)
    assert await desk.state(request) is State.WAITING


async def test_who_is_taken_out_of_people_before_the_last_yes_no_longer_counts(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    desk.rules = Rules(People.named({"Bea": ("telegram:222",), "Cem": ("telegram:333",)}), required=2)
    await desk.says(request, BEA)
    assert await desk.state(request) is State.WAITING


async def test_answers_given_at_the_same_instant_are_all_counted(desk, make_request):
    for number in range(10):
        request = make_request(f"{number:08d}-aaaa-4aaa-8aaa-000000000001")
        binding = replace(request.binding, digest=f"{number:064d}")
        request = await desk.approvals.ask(replace(request, binding=binding))
        await asyncio.gather(desk.says(request, ANN), desk.says(request, BEA), desk.says(request, ANN))
        kept = await desk.store.request(request.id)
        assert kept.state is State.APPROVED
        assert {given.reviewer.person for given in kept.reviews} == {"Ann", "Bea"}


async def test_a_no_at_the_same_instant_as_the_last_yes_leaves_one_outcome(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    answers = await asyncio.gather(desk.says(request, BEA), desk.says(request, ANN, Answer.DENY))
    assert sum(answer.accepted for answer in answers) == 1
    kinds = [link.event.kind async for link in desk.store.events()]
    assert len([kind for kind in kinds if kind in ("approval.approved", "approval.denied")]) == 1


async def test_every_copy_is_brought_up_to_date_and_the_record_tells_each_answer(desk, make_request):
    request = await desk.approvals.ask(make_request())
    for channel in ("web", "telegram"):
        for message in await desk.store.due(channel, desk.clock.now(), 9):
            await desk.store.delivered(message, "ref")
    await desk.says(request, ANN)
    due = [m for channel in ("web", "telegram") for m in await desk.store.due(channel, desk.clock.now(), 9)]
    assert [(m.channel, m.kind) for m in due] == [
        ("web", MessageKind.UPDATE),
        ("telegram", MessageKind.UPDATE),
    ]
    reviewed = [link.event async for link in desk.store.events() if link.event.kind == "approval.reviewed"]
    assert [event.data["yes"] for event in reviewed] == [[["Ann", "allow-once"]]]
    assert reviewed[0].actor == "person:telegram:111"


async def test_a_question_nobody_finishes_expires_and_no_fallback_grants_it(desk, make_request, clock):
    async def yes(_request):
        return True

    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    clock.advance(120_000)
    await deadlines_pass(desk.approvals, yes)
    assert await desk.state(request) is State.EXPIRED


async def test_the_card_tells_the_next_one_how_far_the_first_yes_goes_and_why(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN, Answer.ALLOW_FOR, for_ms=60 * MINUTES, max_uses=3, reason="looks right")
    progress = (await desk.approvals.card(request.id)).progress
    assert progress == "1 of 2: Ann (telegram:111) allowed for 1 h (3 more at most), because: looks right"


async def test_a_reason_of_one_of_several_people_is_told_as_theirs(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN, reason="looks right")
    settled = await desk.says(request, BEA)
    assert settled.text == f"Allowed once by {BOTH}: Ann: looks right"


async def test_reasons_of_all_who_agreed_are_told(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN, reason="looks right")
    await desk.says(request, BEA, reason="tested")
    assert (await desk.store.request(request.id)).resolution.reason == "Ann: looks right; Bea: tested"


BOTH = "Ann (telegram:111) and Bea (telegram:222)"


async def test_a_permission_names_everybody_who_gave_it(desk, make_request):
    request = await desk.approvals.ask(make_request())
    for who in (ANN, ANN_AT_THE_PAGE, BEA):
        await desk.says(request, who, Answer.ALLOW_FOR, for_ms=15 * MINUTES)
    (row,) = await Permissions(desk.store, desk.clock).standing()
    assert row["by"] == BOTH
    (permission,) = await desk.store.permissions(desk.clock.now())
    ask = Decision(Layer.EXEC_SECURITY, Effect.ASK, "x", "exec.miss", "tools")
    assert permitting(permission, [ask]).reason.startswith(f"{row['by']} allowed exactly this until")


async def test_an_entry_that_several_people_left_names_them_all(desk, make_request):
    asked = make_request()
    request = await desk.approvals.ask(asked)
    for who in (ANN, BEA):
        await desk.says(request, who, Answer.ALLOW_ALWAYS)
    (kept,) = (await desk.store.exec_approvals()).entries
    assert kept_row(kept, ())["by"] == BOTH


async def test_who_no_longer_counted_is_not_named_among_those_who_allowed_it(desk, make_request):
    desk.routes = (ROUTES[0], replace(ROUTES[1], approvers=(*ROUTES[1].approvers, "telegram:333")))
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    desk.rules = Rules(People.named({"Bea": ("telegram:222",), "Cem": ("telegram:333",)}), required=2)
    await desk.says(request, BEA)
    settled = await desk.says(request, Reviewer("telegram", "333", "cem"))
    assert settled.text == "Allowed once by Bea (telegram:222) and Cem (telegram:333)"


async def test_a_deny_rule_names_who_denied_and_nobody_who_had_allowed(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.says(request, ANN)
    await desk.says(request, BEA, Answer.DENY_ALWAYS)
    (row,) = await Permissions(desk.store, desk.clock).standing()
    assert (row["effect"], row["by"]) == ("deny", "Bea (telegram:222)")


async def test_the_record_of_a_yes_tells_everybody_whose_it_is(desk, make_request):
    request = await desk.approvals.ask(make_request())
    for who in (ANN, BEA):
        await desk.says(request, who, Answer.ALLOW_FOR, for_ms=15 * MINUTES)
    (yes,) = [link.event async for link in desk.store.events() if link.event.kind == "approval.approved"]
    assert yes.data["by"] == ["telegram:111", "telegram:222"]
    assert yes.data["yes"] == [["Ann", "allow-for"], ["Bea", "allow-for"]]
    assert (await desk.store.request(request.id)).resolution.to_json(request.id)["by"] == BOTH


async def test_the_strictest_place_that_is_asked_speaks_for_the_question(desk, make_request):
    desk.rules = Rules(PEOPLE, required=1)
    desk.routes = (ROUTES[0], replace(ROUTES[1], required=2))
    request = await desk.approvals.ask(make_request())
    assert request.required == 2
    await desk.says(request, ANN_AT_THE_PAGE)
    assert await desk.state(request) is State.WAITING


@pytest.mark.parametrize(
    ("people", "routes", "session", "separate", "possible"),
    [
        ({"Ann": ("telegram:111",), "Bea": ("telegram:222",)}, ROUTES, None, False, True),
        ({"Ann": ("telegram:111",), "Bea": ("telegram:444",)}, ROUTES, None, False, False),
        ({"Ann": ("telegram:111", "web:operator"), "Bea": ("discord:222",)}, ROUTES, None, False, False),
        ({"Ann": ("telegram:111",), "Bea": ("web:bea",)}, ROUTES, None, False, False),
        ({"Ann": ("telegram:111",), "Bea": ("cli:7",)}, ROUTES, None, False, True),
        ({"Ann": ("telegram:111",), "Bea": ("web:operator",)}, ROUTES[1:], None, False, False),
        ({"Ann": ("telegram:111",), "Bea": ("telegram:222",)}, ROUTES, "telegram:111", True, False),
        ({"Ann": ("telegram:111",), "Bea": ("telegram:222",)}, ROUTES, "telegram:111", False, True),
        ({}, ROUTES, None, False, False),
    ],
)
async def test_what_too_few_people_could_allow_is_denied_at_once(
    desk, make_request, people, routes, session, separate, possible
):
    desk.rules, desk.routes = Rules(People.named(people, registry.whose_chat), 2, separate), routes
    request = make_request()
    key = SessionKey.parse(f"agent:main:{session}") if session else SessionKey.main("main")
    decision = desk.approvals.unanswerable(replace(request, call=replace(request.call, session=key)))
    assert (decision is None) == possible
    if decision is not None:
        assert decision.rule == "no-approval-route"
        assert "2 different people" in decision.reason


async def test_an_agent_is_told_at_once_where_too_few_people_can_be_asked(make_system):
    from tests.core_system import exec_call  # noqa: PLC0415 - a helper beside the fixtures

    system = make_system()
    system.approvals._rules = lambda: Rules(PEOPLE, required=3)
    outcome = await system.gate.ask(exec_call("ls", "-l"), None)
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "no-approval-route"
    assert "only Ann can be asked" in outcome.reason


class TestSeparationOfDuties:
    OWN = SessionKey.parse("agent:main:telegram:111")

    async def asked(self, desk, make_request, required=1):
        desk.rules = Rules(PEOPLE, required, separate=True)
        request = make_request()
        return await desk.approvals.ask(replace(request, call=replace(request.call, session=self.OWN)))

    @pytest.mark.parametrize("who", [ANN, ANN_AT_THE_PAGE, ANN_AT_THE_COMMAND_LINE])
    async def test_the_person_whose_chat_it_is_may_not_allow_it_by_any_of_their_ids(
        self, desk, make_request, who
    ):
        request = await self.asked(desk, make_request)
        refused = await desk.says(request, who)
        assert not refused.accepted
        assert "your own chat" in refused.text
        assert await desk.state(request) is State.WAITING

    async def test_they_may_deny_it(self, desk, make_request):
        request = await self.asked(desk, make_request)
        assert (await desk.says(request, ANN, Answer.DENY)).accepted
        assert await desk.state(request) is State.DENIED

    async def test_others_may_allow_it(self, desk, make_request):
        request = await self.asked(desk, make_request)
        assert (await desk.says(request, BEA)).accepted
        assert await desk.state(request) is State.APPROVED

    async def test_an_id_that_people_does_not_name_is_bound_by_itself(self, desk, make_request):
        request = await self.asked(desk, make_request)
        desk.rules = Rules(People.named({}, registry.whose_chat), required=1, separate=True)
        assert "your own chat" in (await desk.says(request, ANN)).text
        assert (await desk.says(request, BEA)).accepted

    async def test_who_may_be_the_owner_elsewhere_may_not_allow_it_until_people_says_who_that_is(
        self, desk, make_request
    ):
        request = await self.asked(desk, make_request)
        desk.rules = Rules(People.named({"Ann": ("telegram:111",)}, registry.whose_chat), separate=True)
        refused = await desk.says(request, ANN_AT_THE_PAGE)
        assert not refused.accepted
        assert "under people" in refused.text
        known = {"Ann": ("telegram:111",), "Bea": ("web:operator",)}
        desk.rules = Rules(People.named(known, registry.whose_chat), separate=True)
        assert (await desk.says(request, ANN_AT_THE_PAGE)).accepted

    async def test_a_chat_whose_id_is_not_its_persons_is_as_people_says(self, desk, make_request):
        self.OWN = SessionKey.parse("agent:main:discord:D777")
        request = await self.asked(desk, make_request)
        assert "cannot be told" in (await desk.says(request, BEA)).text
        people = {"Ann": ("telegram:111", "discord:D777"), "Bea": ("telegram:222",)}
        desk.rules = Rules(People.named(people, registry.whose_chat), separate=True)
        assert "your own chat" in (await desk.says(request, ANN)).text
        assert not (await desk.says(request, STRANGER)).accepted
        assert (await desk.says(request, BEA)).accepted

    @pytest.mark.parametrize("chat", ["telegram:-100", "telegram:ann", "telegram:0111", "discord:111"])
    async def test_where_nobody_can_be_told_from_the_owner_it_is_denied_at_once(
        self, desk, make_request, chat
    ):
        request = make_request()
        for session, possible in ((chat, False), ("telegram:111", True), ("main", True)):
            asked = replace(
                request, call=replace(request.call, session=SessionKey.parse(f"agent:main:{session}"))
            )
            desk.rules = Rules(PEOPLE, separate=True)
            decision = desk.approvals.unanswerable(asked)
            assert (decision is None) == possible
            if decision is not None:
                assert decision.rule == "no-approval-route"
                assert chat in decision.reason
            desk.rules = Rules(PEOPLE)
            assert desk.approvals.unanswerable(asked) is None

    async def test_sessions_that_they_started_are_theirs_too(self, desk, make_request):
        self.OWN = SessionKey.parse("agent:main:telegram:111:subagent:a")
        request = await self.asked(desk, make_request)
        assert not (await desk.says(request, ANN)).accepted

    async def test_without_the_setting_they_may_allow_it(self, desk, make_request):
        request = await self.asked(desk, make_request)
        desk.rules = Rules(PEOPLE)
        assert (await desk.says(request, ANN)).accepted


class TestWhatIsInForceWhenTheLastYesComes:
    """Earlier answers are looked at again: they count for whoever may still give them."""

    async def test_who_is_no_approver_any_more_does_not_count_and_another_does(self, desk, make_request):
        request = await desk.approvals.ask(make_request())
        await desk.says(request, BEA)
        desk.routes = (ROUTES[0], replace(ROUTES[1], approvers=("telegram:111", "telegram:333")))
        await desk.says(request, ANN)
        assert await desk.state(request) is State.WAITING
        await desk.says(request, Reviewer("telegram", "333", "cem"))
        assert await desk.state(request) is State.APPROVED

    async def test_who_was_let_in_by_a_name_counts_while_that_is_written(self, desk, make_request):
        sender = Sender("telegram", "222", "Bea", username="bea")
        for approvers, state in (
            (("telegram:111", "username:bea"), State.APPROVED),
            (("telegram:111", "username:cem"), State.WAITING),
        ):
            desk.routes = (ROUTES[0], replace(ROUTES[1], approvers=("telegram:111", "username:bea")))
            request = make_request(f"{state.value:0>8}-aaaa-4aaa-8aaa-000000000001")
            binding = replace(request.binding, digest=f"{state.value:0>64}")
            request = await desk.approvals.ask(replace(request, binding=binding))
            await desk.says(request, BEA, sender=sender)
            desk.routes = (ROUTES[0], replace(ROUTES[1], approvers=approvers))
            await desk.says(request, ANN)
            assert await desk.state(request) is state

    async def test_the_owners_yes_counts_no_more_once_duties_are_separated(self, desk, make_request):
        own = SessionKey.parse("agent:main:telegram:111")
        request = make_request()
        request = await desk.approvals.ask(replace(request, call=replace(request.call, session=own)))
        await desk.says(request, ANN)
        desk.rules = Rules(PEOPLE, required=2, separate=True)
        await desk.says(request, BEA)
        assert await desk.state(request) is State.WAITING
        desk.rules = Rules(PEOPLE, required=2)
        await desk.says(request, BEA)
        assert await desk.state(request) is State.APPROVED

    async def test_who_may_elevate_no_more_does_not_count(self, desk, make_request):
        elevated = {"agent": ("telegram:111", "telegram:222")}

        def authority(_agent):
            return Authority(
                enabled=True, allow_from=elevated["agent"], inherit=False, source="tools.elevated.allowFrom"
            )

        desk.rules = Rules(PEOPLE, required=2, authority=authority)
        request = await desk.approvals.ask(make_request(obligations=frozenset({Obligation.ELEVATES})))
        assert (await desk.says(request, BEA)).accepted
        elevated["agent"] = ("telegram:111",)
        assert (await desk.says(request, ANN)).accepted
        assert await desk.state(request) is State.WAITING
        elevated["agent"] = ("telegram:111", "telegram:222")
        await desk.says(request, ANN)
        assert await desk.state(request) is State.APPROVED

    async def test_a_person_whose_id_was_taken_out_may_say_it_again_by_another(self, desk, make_request):
        request = await desk.approvals.ask(make_request())
        await desk.says(request, ANN)
        desk.rules = Rules(People.named({"Ann": ("web:operator",), "Bea": ("telegram:222",)}), required=2)
        await desk.says(request, BEA)
        assert await desk.state(request) is State.WAITING
        assert (await desk.says(request, ANN_AT_THE_PAGE)).accepted
        assert await desk.state(request) is State.APPROVED

    async def test_enough_yeses_that_count_again_settle_it_with_the_next_answer(self, desk, make_request):
        request = await desk.approvals.ask(make_request())
        await desk.says(request, ANN)
        desk.rules = Rules(People.named({"Bea": ("telegram:222",), "Cem": ("telegram:333",)}), required=2)
        await desk.says(request, BEA)
        desk.rules = Rules(PEOPLE, required=2)
        await desk.says(request, BEA)
        assert await desk.state(request) is State.APPROVED

    async def test_who_is_taken_out_while_the_last_yes_is_being_taken_does_not_count(
        self, kept_desk, make_request
    ):
        desk, meddled = kept_desk
        request = await desk.approvals.ask(make_request())
        await desk.says(request, BEA)

        async def take_out(*_args):
            meddled.before.pop("commit")
            desk.routes = (ROUTES[0], replace(ROUTES[1], approvers=("telegram:111",)))
            await meddled.revise()

        meddled.before["commit"] = take_out
        assert (await desk.says(request, ANN)).accepted
        assert await desk.state(request) is State.WAITING

    @pytest.fixture
    async def kept_desk(self, meddled, clock):
        return Desk(meddled, clock, Rules(PEOPLE, required=2)), meddled
