"""Whatever people answer, in whatever order: properties of the quorum, over a store that lives in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from core.approvals.ledger import Ledger
from core.approvals.quorum import People
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.approvals.service import Approvals
from core.model.principal import Reviewer
from core.model.request import Answer, Review, State

PEOPLE = {
    "ann": ("telegram:1", "web:operator", "cli:0"),
    "bea": ("telegram:2", "cli:2"),
    "cem": ("telegram:3",),
    "dan": ("telegram:4",),
}
IDS = [("telegram", str(n)) for n in range(1, 7)] + [("web", "operator"), ("cli", "0"), ("cli", "2")]
WIDTH = {
    Answer.ALLOW_ONCE: 0,
    Answer.ALLOW_FOR: 1,
    Answer.ALLOW_ALWAYS: 2,
    Answer.ALLOW_ALWAYS_ANY: 3,
}
APPROVERS = tuple(f"telegram:{number}" for number in range(1, 7))
ROUTES = (Route("web", "", (), 120_000, "test"), Route("telegram", "-1", APPROVERS, 120_000, "test"))
OWNERS = People.named(PEOPLE)


class MemoryStore:
    """Just enough of RequestStore: one request, replaced by compare-and-swap on its state and its answers."""

    def __init__(self):
        self.kept, self.changes = None, []

    async def commit(self, change):
        if not change.insert:
            if self.kept.state not in change.expect:
                return False
            known = len(change.request.reviews) - (change.review is not None)
            if known != len(self.kept.reviews):
                return False
        self.kept = change.request
        self.changes.append(change)
        await asyncio.sleep(0)
        return True

    async def revision(self):
        return 0

    async def request(self, _request_id):
        await asyncio.sleep(0)
        return self.kept


@st.composite
def answers(draw):
    channel, identifier = draw(st.sampled_from(IDS))
    answer = draw(st.sampled_from(list(Answer)))
    timed = answer is Answer.ALLOW_FOR
    for_ms = draw(st.sampled_from([60_000, 900_000, 3_600_000])) if timed else None
    max_uses = draw(st.sampled_from([None, 1, 5])) if timed else None
    return Review("x", answer, Reviewer(channel, identifier, "somebody"), None, for_ms, max_uses)


def outcome(request, reviews, required, clock, *, at_once, separate=False):
    """Let people answer, one after the other or all at once; returns the store."""

    async def play():
        store = MemoryStore()
        rules = Rules(OWNERS, required, separate)
        desk = Approvals(Ledger(store), store, clock, lambda _request: ROUTES, (), lambda: rules)
        asked = await desk.ask(request)
        theirs = [replace(review, request_id=asked.id) for review in reviews]
        if at_once:
            await asyncio.gather(*(desk.review(review) for review in theirs))
        else:
            for review in theirs:
                await desk.review(review)
        return store

    return asyncio.run(play())


def person(review):
    return OWNERS.person(review.reviewer.channel, review.reviewer.id)


relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
many = st.lists(answers(), max_size=14)


@relaxed
@given(many, st.integers(2, 4), st.booleans())
def test_fewer_people_than_required_never_make_a_yes(make_request, clock, reviews, required, at_once):
    store = outcome(make_request(), reviews, required, clock, at_once=at_once)
    agreed = {person(review) for review in reviews if review.answer.allows} - {None}
    if len(agreed) < required:
        assert store.kept.state is not State.APPROVED
        assert all(change.issue_grant is None for change in store.changes)
    if store.kept.state is State.APPROVED:
        said_yes = {person(given) for given in store.kept.reviews}
        assert len(said_yes) == required
        assert None not in said_yes


@relaxed
@given(
    many, many, st.integers(2, 4), st.sampled_from([Answer.DENY, Answer.DENY_ALWAYS]), st.sampled_from(IDS)
)
def test_a_veto_anywhere_before_the_last_yes_ends_it(make_request, clock, before, after, required, no, who):
    veto = Review("x", no, Reviewer(*who, "somebody"))
    undecided = outcome(make_request(), before, required, clock, at_once=False).kept.state is State.WAITING
    store = outcome(make_request(), [*before, veto, *after], required, clock, at_once=False)
    if undecided:
        assert store.kept.state is State.DENIED
        assert (store.kept.resolution.decision, store.kept.reviews[-1].answer) == (no.value, no)
        assert all(change.issue_grant is None for change in store.changes)


@relaxed
@given(many, st.integers(2, 4), st.booleans())
def test_what_is_granted_is_never_wider_than_any_answer_that_made_it(
    make_request, clock, reviews, required, at_once
):
    asked = make_request()
    (entry,) = asked.always.entries
    wider = structs.replace(entry, args=None, any_arguments=True)
    asked = replace(asked, always=structs.replace(asked.always, wider=(wider,), wider_words=("any",)))
    store = outcome(asked, reviews, required, clock, at_once=at_once)
    if store.kept.state is not State.APPROVED:
        return
    last = {person(given): given for given in store.kept.reviews}
    granted, change = store.kept.resolution, store.changes[-1]
    for given_ in last.values():
        assert WIDTH[Answer(granted.decision)] <= WIDTH[given_.answer]
        if change.permit is not None and given_.for_ms is not None:
            assert change.permit.expires_at - change.permit.given_at <= given_.for_ms
            assert given_.max_uses is None or change.permit.max_uses <= given_.max_uses
    learned = change.learn.entries if change.learn else ()
    assert learned == {"allow-always": (entry,), "allow-always-any": (wider,)}.get(granted.decision, ())
    assert (change.permit is not None) == (granted.decision == "allow-for")


@relaxed
@given(many, st.booleans())
def test_one_person_by_all_their_ids_is_one(make_request, clock, reviews, at_once):
    ann = [replace(review, reviewer=Reviewer("cli", "0", "a")) for review in reviews]
    ann = [review for review in ann if review.answer.allows]
    ids = [("telegram", "1"), ("web", "operator"), ("cli", "0")]
    ann = [replace(r, reviewer=Reviewer(*ids[n % 3], "a")) for n, r in enumerate(ann)]
    store = outcome(make_request(), ann, 2, clock, at_once=at_once)
    assert store.kept.state is State.WAITING
