"""What every Store keeps and promises.

That is: RequestStore, StandingStore, SessionStore, AllowlistStore, CredentialStore, OutboxStore, AuditStore
and LockStore.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from core.audit import GENESIS, verify
from core.errors import StoreError
from core.model.allowlist import AllowlistEdit, AllowlistEntry, AlwaysOffer, EntryUse, KeptEntry
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.decision import Obligation
from core.model.notice import Notice, NoticeKind
from core.model.plan import Binding
from core.model.principal import Claims, Reviewer
from core.model.request import (
    AgentRecord,
    AuditEvent,
    Change,
    Copy,
    Grant,
    MessageKind,
    OutboxMessage,
    Request,
    RequestKind,
    Resolution,
    State,
)
from core.model.session import SessionKey
from core.model.tightening import AgentLimits, DocumentSettings, Stated

EVENT = AuditEvent(5, "request.created", "main", "r", {"x": 1})
PERSON = Reviewer("web", "operator", "Ada")
LS = AllowlistEntry("/usr/bin/ls", real_path="/usr/bin/ls", agent="main")


def approved(request, grant_until=10_000):
    resolution = Resolution("allow-once", 2_000, PERSON)
    return Change(
        replace(request, state=State.APPROVED, resolution=resolution),
        expect=frozenset({State.WAITING}),
        issue_grant=Grant(request.id, request.binding.digest, 2_000, grant_until),
        events=(AuditEvent(2_000, "request.approved", "Ada", request.id),),
        messages=(OutboxMessage("web", MessageKind.UPDATE, request.id, 2_000),),
    )


def started(request, at=3_000):
    return Change(
        replace(request, state=State.RUNNING, started_at=at),
        expect=frozenset({State.APPROVED}),
        consume_grant_at=at,
        events=(AuditEvent(at, "run.started", "main", request.id),),
    )


def posts(request, *channels):
    return tuple(OutboxMessage(channel, MessageKind.POST, request.id, 1_000) for channel in channels)


async def keep(store, request, **more):
    assert await store.commit(Change(request, insert=True, **more)) is True
    return request


async def record(store):
    return [link async for link in store.events()]


# Requests


async def test_a_request_is_there_after_the_store_was_opened_anew(open_any_store, new_request):
    async with open_any_store() as store:
        kept = await keep(store, new_request(), events=(EVENT,))
    async with open_any_store() as store:
        assert await store.request(kept.id) == kept
        assert (await verify(store)).events == 1


@pytest.mark.parametrize("name", ["nothing", "", "%", "0" * 31, "\udc80", "a\0b"])
async def test_an_unknown_id_names_nothing(store, new_request, name):
    await keep(store, new_request())
    assert await store.request(name) is None


async def test_an_id_can_be_inserted_once(store, new_request):
    kept = await keep(store, new_request())
    again = Change(
        replace(kept, canonical="other"), insert=True, events=(EVENT,), messages=posts(kept, "web")
    )
    assert await store.commit(again) is False
    assert await store.request(kept.id) == kept
    assert await record(store) == []
    assert await store.due("web", 10_000, 10) == ()


async def test_a_state_is_replaced_only_from_one_that_is_expected(store, new_request):
    kept = await keep(store, new_request())
    running = Change(replace(kept, state=State.FINISHED), expect=frozenset({State.RUNNING, State.APPROVED}))
    assert await store.commit(running) is False
    assert await store.request(kept.id) == kept
    assert await store.commit(replace(running, expect=frozenset({State.RUNNING, State.WAITING}))) is True
    assert (await store.request(kept.id)).state is State.FINISHED


async def test_a_change_that_expects_no_state_or_names_no_kept_request_is_refused(store, new_request):
    kept = await keep(store, new_request())
    assert await store.commit(Change(replace(kept, state=State.DENIED))) is False
    unknown = Change(new_request(), expect=frozenset(State), events=(EVENT,))
    assert await store.commit(unknown) is False
    assert await record(store) == []


async def test_of_two_hundred_resolutions_at_once_exactly_one_wins(store, new_request):
    kept = await keep(store, new_request())
    changes = [
        replace(approved(kept), events=(AuditEvent(number, "request.approved", f"p{number}", kept.id),))
        for number in range(200)
    ]
    won = await asyncio.gather(*(store.commit(change) for change in changes))
    assert sum(won) == 1
    (link,) = await record(store)
    assert link.event.actor == f"p{won.index(True)}"
    assert len(await store.due("web", 10_000, 10)) == 1


async def test_of_many_changes_at_once_those_that_are_refused_leave_nothing_and_the_others_count(
    store, new_request
):
    asked, late, unknown = await keep(store, new_request()), await keep(store, new_request()), new_request()
    assert await store.commit(approved(late, grant_until=2_500))
    # The state of the second one fits and its grant no longer does: what was done for it by then is undone.
    changes = (approved(asked), started(late), approved(unknown))
    assert await store.commit_all(changes) == (True, False, False)
    assert [request.state for request in await store.in_states(*State)] == [State.APPROVED, State.APPROVED]
    assert [(link.event.kind, link.event.request_id) for link in await record(store)] == [
        ("request.approved", late.id),
        ("request.approved", asked.id),
    ]
    assert (await verify(store)).ok


async def test_of_many_changes_at_once_none_counts_where_one_cannot_be_kept(store, new_request):
    first, second = await keep(store, new_request()), await keep(store, new_request())
    stranger = replace(approved(second), issue_grant=Grant("another", "b" * 64, 1, 2))
    with pytest.raises(StoreError, match="does not fit"):
        await store.commit_all((approved(first), stranger))
    assert {request.state for request in await store.in_states(*State)} == {State.WAITING}
    assert await record(store) == []
    assert await store.commit_all(()) == ()


async def test_a_prefix_finds_requests_in_order_of_their_ids(store, new_request):
    ids = ["abcd1111", "abcd2222", "abce0000", "abcz0000"]
    for name in reversed(ids):
        await keep(store, new_request(id=name))
    assert [found.id for found in await store.by_prefix("abcd")] == ids[:2]
    assert [found.id for found in await store.by_prefix("abc", limit=3)] == ids[:3]
    assert [found.id for found in await store.by_prefix("abcz0000")] == ["abcz0000"]


@pytest.mark.parametrize(
    "prefix", ["%", "_bcd", "a%", "abcd1111'", "' OR 1=1 --", "*", "a*", "\udc80", "é", "abcd\0"]
)
async def test_a_hostile_prefix_finds_nothing(store, new_request, prefix):
    await keep(store, new_request(id="abcd1111"))
    assert await store.by_prefix(prefix) == ()


@pytest.mark.parametrize("limit", [0, -1, -(10**30)])
async def test_a_limit_below_one_finds_nothing_and_a_huge_one_is_no_error(store, new_request, limit):
    await keep(store, new_request(id="abcd1111", state=State.DENIED))
    assert await store.by_prefix("abcd", limit) == ()
    assert await store.recent(limit) == ()
    assert len(await store.by_prefix("abcd", 10**30)) == len(await store.recent(10**30)) == 1


async def test_requests_in_states_come_oldest_first(store, new_request):
    late = await keep(store, new_request(created_at=900))
    early = await keep(store, new_request(created_at=100))
    same = await keep(store, new_request(created_at=900, state=State.RUNNING))
    await keep(store, new_request(state=State.DENIED))
    assert await store.in_states(State.WAITING, State.RUNNING) == (early, late, same)
    assert await store.in_states() == ()


async def test_recent_gives_final_ones_newest_first(store, new_request):
    first = await keep(store, new_request(state=State.FINISHED, ended_at=5_000))
    second = await keep(store, new_request(state=State.DENIED, ended_at=9_000))
    third = await keep(store, new_request(state=State.USED, ended_at=9_000))
    await keep(store, new_request())
    assert await store.recent(10) == (third, second, first)
    assert await store.recent(2) == (third, second)


@pytest.mark.parametrize("decision", ["allow-once", "allow-always"])
async def test_a_persons_yes_to_this_binding_counts_as_approved_before(store, new_request, decision):
    resolution = Resolution(decision, 1, PERSON)
    await keep(store, new_request(state=State.FINISHED, resolution=resolution))
    assert (await store.remembered("main", "b" * 64, 0)).seen_before is True


@pytest.mark.parametrize(
    "resolution",
    [
        None,
        Resolution("allow-once", 1, None),
        Resolution("deny", 1, PERSON),
        Resolution("allow", 1, PERSON),
        Resolution("expired", 1, None),
    ],
)
async def test_anything_but_a_persons_yes_does_not_count(store, new_request, resolution):
    await keep(store, new_request(state=State.FINISHED, resolution=resolution))
    assert (await store.remembered("main", "b" * 64, 0)).seen_before is False


async def test_a_yes_counts_for_no_other_agent_and_no_other_binding(store, new_request):
    await keep(store, new_request(resolution=Resolution("allow-once", 1, PERSON)))
    assert (await store.remembered("other", "b" * 64, 0)).seen_before is False
    assert (await store.remembered("main", "c" * 64, 0)).seen_before is False


# Grants


async def test_a_grant_is_consumed_once(store, new_request):
    kept = await keep(store, new_request())
    assert await store.commit(approved(kept)) is True
    assert await store.commit(started(kept)) is True
    again = replace(started(kept), expect=frozenset(State))
    assert await store.commit(again) is False
    assert len(await record(store)) == 2


async def test_of_fifty_starts_at_once_exactly_one_gets_the_grant(store, new_request):
    kept = await keep(store, new_request())
    await store.commit(approved(kept))
    change = replace(started(kept), expect=frozenset(State))
    won = await asyncio.gather(*(store.commit(change) for _ in range(50)))
    assert sum(won) == 1
    assert [link.event.kind for link in await record(store)] == ["request.approved", "run.started"]


async def test_a_grant_counts_until_its_time_and_not_after(store, new_request):
    kept = await keep(store, new_request())
    await store.commit(approved(kept, grant_until=3_000))
    assert await store.commit(started(kept, at=3_001)) is False
    assert (await store.request(kept.id)).state is State.APPROVED
    assert await store.commit(started(kept, at=3_000)) is True


async def test_a_grant_counts_for_its_own_binding_only(store, new_request):
    kept = await keep(store, new_request())
    await store.commit(approved(kept))
    other = replace(kept, binding=Binding("d" * 64, ()))
    assert await store.commit(started(other)) is False
    assert (await store.request(kept.id)).binding == kept.binding


async def test_without_a_grant_nothing_is_consumed(store, new_request):
    kept = await keep(store, new_request(state=State.APPROVED))
    assert await store.commit(started(kept)) is False
    assert await record(store) == []


async def test_a_second_grant_for_a_request_is_refused(store, new_request):
    kept = await keep(store, new_request())
    await store.commit(approved(kept))
    await store.commit(started(kept))
    again = replace(approved(kept), expect=frozenset(State))
    assert await store.commit(again) is False
    assert (await store.request(kept.id)).state is State.RUNNING


@pytest.mark.parametrize("wrong", [{"request_id": "other"}, {"binding": "d" * 64}])
async def test_a_grant_that_does_not_fit_its_request_is_an_error(store, new_request, wrong):
    kept = await keep(store, new_request())
    change = approved(kept)
    with pytest.raises(StoreError, match="does not fit"):
        await store.commit(replace(change, issue_grant=replace(change.issue_grant, **wrong)))
    assert await store.request(kept.id) == kept


async def test_a_change_whose_last_part_fails_leaves_nothing(store, new_request):
    kept = await keep(store, new_request())
    change = approved(kept)
    bad = replace(
        change, learn=AlwaysOffer((LS,)), events=(*change.events, replace(EVENT, data={"x": float("nan")}))
    )
    with pytest.raises(ValueError, match="JSON"):
        await store.commit(bad)
    assert await store.request(kept.id) == kept
    assert await store.due("web", 10_000, 10) == ()
    assert await store.learned("main") == ()
    assert await store.commit(change) is True
    assert (await verify(store)).events == 1


async def test_a_message_for_an_unknown_request_is_an_error_and_leaves_nothing(store, new_request):
    stray = posts(new_request(), "web")
    fresh = new_request()
    with pytest.raises(StoreError, match="contradicts"):
        await store.commit(Change(fresh, insert=True, messages=stray, events=(EVENT,)))
    assert await store.request(fresh.id) is None
    assert await store.commit(Change(fresh, insert=True, events=(EVENT,))) is True


async def test_cancelled_commits_are_whole_or_absent_and_the_store_works_on(store, new_request):
    requests = [new_request() for _ in range(30)]
    tasks = [
        asyncio.create_task(store.commit(Change(r, insert=True, events=(replace(EVENT, request_id=r.id),))))
        for r in requests
    ]
    await asyncio.sleep(0.002)  # some are under way by then; how many does not matter
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    last = await keep(store, new_request(), events=(EVENT,))
    kept = {request.id for request in await store.in_states(State.WAITING)} - {last.id}
    told = {link.event.request_id for link in await record(store)} - {EVENT.request_id}
    assert kept == told
    assert (await verify(store)).ok


# The learned allowlist


async def test_entries_are_learned_once_and_come_back_as_they_were(store, new_request):
    entries = (
        LS,
        structs.replace(LS, args=("-l", "\udc80")),
        structs.replace(LS, args=()),
        structs.replace(LS, agent=None, placement=Placement.HOST),
        structs.replace(LS, pattern="/opt/\udcff/x", sha256="a" * 64),
    )
    await keep(store, new_request(), learn=AlwaysOffer(entries, ("words",)))
    await keep(store, new_request(), learn=AlwaysOffer((entries[1], entries[0])))
    assert await store.learned("main") == entries
    assert await store.learned("other") == (entries[3],)


async def test_a_refused_change_teaches_nothing(store, new_request):
    kept = await keep(store, new_request())
    refused = Change(kept, expect=frozenset({State.RUNNING}), learn=AlwaysOffer((LS,)))
    assert await store.commit(refused) is False
    assert await store.learned("main") == ()


async def kept_by_entry(store):
    return {each.entry: each for each in (await store.exec_approvals()).entries}


async def test_noting_a_use_changes_no_entry_and_no_revision(store, new_request):
    odd = structs.replace(LS, pattern="/opt/\udcff/x")
    await keep(store, new_request(), learn=AlwaysOffer((LS, odd)))
    before, ids = (
        await store.exec_approvals(),
        {entry: each.id for entry, each in (await kept_by_entry(store)).items()},
    )
    uses = (EntryUse(ids[odd], "/opt/\udcff/x", "/opt/\udcff/y"), EntryUse("no-such", "x", "/x"))
    await store.record_uses(uses, 7_000)
    assert await store.learned("main") == (LS, odd)
    after = await store.exec_approvals()
    assert after.revision == before.revision
    used = (await kept_by_entry(store))[odd]
    assert (used.last_used_at, used.last_command, used.last_path) == (
        7_000,
        "/opt/\\udcff/x",
        "/opt/\udcff/y",
    )
    assert (await kept_by_entry(store))[LS].last_used_at is None


async def test_a_learned_entry_says_who_left_it_when_and_on_which_request(store, new_request):
    by = Reviewer("telegram", "1", "ann")
    request = new_request(resolution=Resolution("allow-always", 5_000, by))
    await keep(store, request, learn=AlwaysOffer((LS,)))
    learned = (await kept_by_entry(store))[LS]
    assert (learned.given_by, learned.given_at, learned.request_id) == ((by,), 5_000, request.id)
    assert [entry.id for entry in await store.learned("main")] == [learned.id]


ADDED = KeptEntry("added-0001", AllowlistEntry("/usr/bin/rg", agent=None, source="added"), (), 9_000)


async def test_an_edit_counts_only_on_what_was_read(store, new_request):
    first = await store.exec_approvals()
    assert await store.edit_allowlist(first.revision, AllowlistEdit(put=(ADDED,)), EVENT)
    assert not await store.edit_allowlist(first.revision, AllowlistEdit(remove=(ADDED.id,)), EVENT)
    assert await store.learned("main") == (ADDED.entry,)
    await keep(store, new_request(), learn=AlwaysOffer((LS,)))
    second = await store.exec_approvals()
    assert second.revision > first.revision
    settings = DocumentSettings(AgentLimits(ask="always"), {"main": AgentLimits(security="deny")})
    edit = AllowlistEdit((ADDED.id,), settings=settings)
    assert await store.edit_allowlist(second.revision, edit, EVENT)
    third = await store.exec_approvals()
    assert third.settings == settings
    assert [each.entry for each in third.entries] == [LS]
    (tightening,) = (await store.remembered("main", "b", 1)).tightenings
    assert tightening.security == Stated("deny", "exec-approvals.json agents.main.security")
    assert tightening.ask == Stated("always", "exec-approvals.json defaults.ask")
    assert tightening.ask_fallback is None


async def test_an_edit_that_keeps_what_is_there_already_changes_nothing_at_all(store):
    state = await store.exec_approvals()
    assert await store.edit_allowlist(state.revision, AllowlistEdit(put=(ADDED,)), EVENT)
    state, told = await store.exec_approvals(), len(await record(store))
    again = AllowlistEdit((ADDED.id,), (ADDED, replace(ADDED, id="added-0002")))
    assert not await store.edit_allowlist(state.revision, again, EVENT)
    assert await store.exec_approvals() == state
    assert len(await record(store)) == told


# Credentials


def agent(name="main", token="a" * 64, at=1):
    return AgentRecord(name, token, at)


async def test_an_agent_is_found_by_its_token_alone(store):
    assert await store.put_agent(agent(), EVENT) is True
    assert await store.agent_by_token("a" * 64) == agent()
    for other in ("b" * 64, "A" * 64, "a" * 63, "", "%", "main"):
        assert await store.agent_by_token(other) is None


async def test_a_live_agent_is_not_replaced(store):
    await store.put_agent(agent(), EVENT)
    assert await store.put_agent(agent(token="b" * 64), EVENT) is False
    assert await store.agents() == (agent(),)
    assert await store.agent_by_token("b" * 64) is None
    assert len(await record(store)) == 1


async def test_a_revoked_agents_token_is_dead_and_its_id_can_be_minted_anew(store):
    await store.put_agent(agent(), EVENT)
    assert await store.revoke_agent("main", replace(EVENT, at=9)) is True
    assert await store.agent_by_token("a" * 64) is None
    assert await store.agents() == (replace(agent(), revoked_at=9),)
    assert await store.revoke_agent("main", EVENT) is False
    assert await store.put_agent(agent(token="b" * 64, at=10), EVENT) is True
    assert await store.agent_by_token("a" * 64) is None
    assert await store.agents() == (agent(token="b" * 64, at=10),)
    assert len(await record(store)) == 3


async def test_text_that_no_agent_has_is_an_error_and_not_a_crash(store):
    with pytest.raises(StoreError, match="out of range"):
        await store.revoke_agent("\udc80", EVENT)


async def test_revoking_an_unknown_agent_changes_nothing(store):
    assert await store.revoke_agent("nobody", EVENT) is False
    assert await record(store) == []


async def test_two_agents_cannot_have_one_token(store):
    await store.put_agent(agent(), EVENT)
    with pytest.raises(StoreError):
        await store.put_agent(agent("other"), EVENT)
    assert await store.agents() == (agent(),)


async def test_a_login_counts_before_its_time_is_over_and_until_it_is_ended(store):
    await store.put_login("a" * 64, 5_000)
    assert await store.login_valid("a" * 64, 4_999) is True
    assert await store.login_valid("a" * 64, 5_000) is False
    assert await store.login_valid("b" * 64, 1) is False
    await store.end_login("a" * 64)
    assert await store.login_valid("a" * 64, 1) is False


# The outbox


async def test_messages_of_one_request_come_one_at_a_time_in_order(store, new_request):
    one, two = new_request(), new_request()
    await keep(store, one, messages=posts(one, "web"))
    await keep(store, two, messages=posts(two, "web", "chat"))
    await store.commit(approved(one))
    first, second = await store.due("web", 10_000, 10)
    assert [(m.request_id, m.kind) for m in (first, second)] == [
        (one.id, MessageKind.POST),
        (two.id, MessageKind.POST),
    ]
    await store.delivered(first, "ref-1")
    second_again, update = await store.due("web", 10_000, 10)
    assert second_again == second
    assert (update.request_id, update.kind) == (one.id, MessageKind.UPDATE)
    assert [m.channel for m in await store.due("chat", 10_000, 10)] == ["chat"]


async def test_nothing_is_due_before_its_time_or_beyond_the_limit(store, new_request):
    for _ in range(3):
        request = new_request()
        await keep(store, request, messages=posts(request, "web"))
    assert await store.due("web", 999, 10) == ()
    assert len(await store.due("web", 1_000, 2)) == 2
    assert await store.due("web", 1_000, 0) == ()
    assert await store.due("chat", 1_000, 10) == ()
    assert await store.next_due("web") == 1_000
    assert await store.next_due("chat") is None


async def test_a_failed_message_holds_back_those_after_it(store, new_request):
    request = await keep(store, new_request(), messages=())
    await store.commit(
        replace(approved(request), messages=posts(request, "web") + approved(request).messages)
    )
    (post,) = await store.due("web", 3_000, 10)
    await store.failed(post, 9_000, "no answer \udc80")
    assert await store.due("web", 8_999, 10) == ()
    assert await store.next_due("web") == 9_000
    (again,) = await store.due("web", 9_000, 10)
    assert again == replace(post, attempts=1, due_at=9_000)
    await store.delivered(again, None)
    assert [m.kind for m in await store.due("web", 9_000, 10)] == [MessageKind.UPDATE]


async def test_a_later_update_takes_the_place_of_an_earlier_one_of_its_channel_and_request(
    store, new_request
):
    request, other = new_request(), new_request()
    updates = tuple(
        OutboxMessage(channel, MessageKind.UPDATE, kept.id, due)
        for channel, kept, due in [("web", request, 1), ("chat", request, 2), ("web", other, 3)]
    )
    await keep(store, request)
    await keep(store, other, messages=updates)
    (stale, _) = await store.due("web", 9, 9)
    await store.commit(approved(request))
    assert [(m.request_id, m.due_at) for m in await store.due("web", 9_000, 9)] == [
        (other.id, 3),
        (request.id, 2_000),
    ]
    assert [m.due_at for m in await store.due("chat", 9_000, 9)] == [2]
    await store.failed(stale, 99_000, "late news of a message that is gone")
    await store.dropped(stale, "likewise")
    assert len(await store.due("web", 9_000, 9)) == 2
    assert [link.event.kind for link in await record(store)] == ["request.approved"]


async def test_a_post_is_never_replaced_by_an_update(store, new_request):
    request = new_request()
    await keep(store, request, messages=posts(request, "web"))
    await store.commit(approved(request))
    assert [m.kind for m in await store.due("web", 9_000, 9)] == [MessageKind.POST]


async def test_a_post_does_not_take_the_place_of_an_update(store, new_request):
    request = new_request()
    update = OutboxMessage("web", MessageKind.UPDATE, request.id, 1)
    await keep(store, request, messages=(update, *posts(request, "web")))
    (first,) = await store.due("web", 9_000, 9)
    await store.delivered(first, None)
    (second,) = await store.due("web", 9_000, 9)
    assert (first.kind, second.kind) == (MessageKind.UPDATE, MessageKind.POST)


async def test_a_dropped_message_is_gone_and_on_the_record(store, new_request):
    request = new_request()
    await keep(store, request, messages=posts(request, "web"))
    (post,) = await store.due("web", 9_000, 9)
    await store.dropped(replace(post, attempts=7), "channel deleted")
    assert await store.next_due("web") is None
    (link,) = await record(store)
    assert (link.event.kind, link.event.request_id) == ("message.dropped", request.id)
    assert link.event.data == {
        "channel": "web",
        "place": "",
        "message": "post",
        "attempts": 7,
        "error": "channel deleted",
    }


def shown_in(request, *places):
    """Plan a copy in each (channel, place), and post it."""
    copies = tuple(Copy(channel, place, f"nonce-{channel}-{place}-{request.id}") for channel, place in places)
    messages = tuple(OutboxMessage(c.channel, MessageKind.POST, request.id, 1_000, c.place) for c in copies)
    return replace(request, copies=copies), messages


async def test_a_copy_is_planned_with_its_request_and_gets_its_ref_when_it_is_delivered(store, new_request):
    request, messages = shown_in(new_request(), ("web", ""), ("chat", "1"), ("chat", "2"))
    await keep(store, request, messages=messages)
    assert [(kept.copy, kept.ref) for kept in await store.copies(request.id)] == [
        (copy, None) for copy in request.copies
    ]
    for post in await store.due("chat", 9_000, 9):
        await store.delivered(post, f"ref-{post.place}")
        await store.delivered(post, f"ref-{post.place}")
    assert [kept.ref for kept in await store.copies(request.id)] == [None, "ref-1", "ref-2"]
    assert await store.copies("other") == ()


async def test_a_copy_is_found_by_its_nonce_and_by_nothing_else(store, new_request):
    request, messages = shown_in(new_request(), ("chat", "1"))
    await keep(store, request, messages=messages)
    nonce = request.copies[0].nonce
    kept = await store.copy_by_nonce(nonce)
    assert (kept.request_id, kept.copy) == (request.id, request.copies[0])
    for near in ("", nonce[:-1], nonce.upper(), nonce + " ", "\udc80", "%", request.id):
        assert await store.copy_by_nonce(near) is None


async def test_a_ref_that_is_known_is_not_replaced_by_a_later_one(store, new_request):
    request, messages = shown_in(new_request(), ("chat", "1"))
    await keep(store, request, messages=messages)
    await store.note_ref(request.copies[0], "first")
    await store.note_ref(request.copies[0], "second")
    assert [kept.ref for kept in await store.copies(request.id)] == ["first"]


async def test_one_place_does_not_wait_for_another_of_the_same_channel(store, new_request):
    request, messages = shown_in(new_request(), ("chat", "1"), ("chat", "2"))
    await keep(store, request, messages=messages)
    stuck, other = await store.due("chat", 9_000, 9)
    await store.failed(stuck, 99_000, "slow mode")
    await store.delivered(other, "ref")
    update = OutboxMessage("chat", MessageKind.UPDATE, request.id, 1_000, "2")
    await store.post(update)
    assert [(m.kind, m.place) for m in await store.due("chat", 9_000, 9)] == [(MessageKind.UPDATE, "2")]


async def test_notices_need_no_request_and_wait_for_nothing(store):
    one, two = (
        OutboxMessage("chat", MessageKind.NOTICE, "", 1_000, "1", Notice(NoticeKind.DENIED, text))
        for text in ("first", "second")
    )
    await store.post(one, two)
    due = await store.due("chat", 9_000, 9)
    assert [message.notice.text for message in due] == ["first", "second"]
    await store.dropped(due[0], "the chat is gone")
    await store.delivered(due[1], None)
    assert await store.next_due("chat") is None


# The record and the kill switch


async def test_the_record_chains_events_in_order_and_notes_its_head(store):
    assert await store.head() == (0, GENESIS)
    events = [AuditEvent(n, "a.b", "main", None if n % 2 else "r", {"n": n, "é": [1.5]}) for n in range(5)]
    await store.append(*events[:2])
    await store.append(*events[2:])
    links = await record(store)
    assert [link.event for link in links] == events
    assert [link.seq for link in links] == [1, 2, 3, 4, 5]
    assert [link.previous for link in links] == [GENESIS, *(link.hash for link in links[:-1])]
    assert await store.head() == (5, links[-1].hash)
    assert [link async for link in store.events(after=3)] == links[3:]
    assert await store.events_about("r") == tuple(links[::2])
    assert (await verify(store)).ok


async def test_a_long_record_is_read_whole(store):
    await store.append(*(AuditEvent(n, "a.b", "main") for n in range(1_203)))
    found = await verify(store)
    assert (found.ok, found.events) == (True, 1_203)


async def test_verify_holds_while_events_are_appended(store):
    await store.append(*(EVENT for _ in range(600)))
    results = await asyncio.gather(verify(store), *(store.append(EVENT) for _ in range(20)), verify(store))
    assert results[0].ok
    assert results[-1].ok


async def test_the_kill_switch_is_kept_and_on_the_record(open_any_store):
    async with open_any_store() as store:
        assert await store.locked() is False
        await store.set_locked(locked=True, event=replace(EVENT, kind="lock.set"))
    async with open_any_store() as store:
        assert await store.locked() is True
        await store.set_locked(locked=False, event=replace(EVENT, kind="lock.ended"))
        assert await store.locked() is False
        assert [link.event.kind for link in await record(store)] == ["lock.set", "lock.ended"]


async def test_a_closed_store_says_so(open_any_store, new_request):
    async with open_any_store() as store:
        pass
    with pytest.raises(StoreError, match="closed"):
        await store.commit(Change(new_request(), insert=True))
    with pytest.raises(StoreError, match="closed"):
        await store.locked()


# Everything comes back exactly

TEXT = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=6)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
INT = st.integers(-(2**53), 2**53)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.text(max_size=4), PLAIN, max_size=3)
ENTRY = st.builds(
    AllowlistEntry,
    pattern=TEXT,
    args=st.none() | TEXTS,
    arg_pattern=st.none() | TEXT,
    placement=st.sampled_from(Placement),
    real_path=st.none() | TEXT,
    sha256=st.none() | TEXT,
    agent=st.none() | st.sampled_from(["main", "other-1"]),
    source=TEXT,
)
COMMAND = st.builds(
    CommandText,
    line=st.none() | TEXT,
    argv=TEXTS,
    cwd=st.none() | TEXT,
    cwd_preferred=st.booleans(),
    env=PAIRS,
    stdin=st.none() | st.binary(max_size=40),
    timeout_s=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
CALL = st.builds(
    ToolCall,
    tool=TEXT,
    session=st.sampled_from(["agent:a:main", "agent:a:web:u1", "agent:a:main:subagent:s1:subagent:s2"]).map(
        SessionKey.parse
    ),
    claims=st.builds(Claims, st.none() | TEXT, st.none() | TEXT, st.integers(0, 9), st.booleans()),
    command=st.none() | COMMAND,
    args=OBJECT,
    elevated=st.none() | TEXT,
)
RESOLUTION = st.builds(
    Resolution,
    decision=TEXT,
    at=INT,
    by=st.none() | st.builds(Reviewer, TEXT, TEXT, TEXT),
    reason=st.none() | TEXT,
)
REQUEST = st.builds(
    Request,
    id=st.builds(lambda: uuid4().hex),
    kind=st.sampled_from(RequestKind),
    state=st.sampled_from(State),
    call=CALL,
    canonical=TEXT,
    cwd=TEXT,
    placement=st.sampled_from(Placement),
    sandbox=st.none() | TEXT,
    verdict=OBJECT,
    binding=st.builds(Binding, st.text("0123456789abcdef", min_size=64, max_size=64), PAIRS),
    created_at=INT,
    deadline=INT,
    always=st.builds(AlwaysOffer, st.lists(ENTRY, max_size=2).map(tuple), TEXTS, st.none() | TEXT),
    obligations=st.frozensets(st.sampled_from(Obligation)),
    resolution=st.none() | RESOLUTION,
    started_at=st.none() | INT,
    ended_at=st.none() | INT,
    outcome=st.none() | OBJECT,
)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(request=REQUEST)
async def test_any_request_comes_back_exactly(store, request):
    change = Change(request, insert=True, learn=request.always)
    assert await store.commit(change)
    back = await store.request(request.id)
    assert back == request
    # The order of a set is no part of it; everything else must come back in its very type.
    plain = {"obligations": frozenset()}
    assert repr(replace(back, **plain)) == repr(replace(request, **plain))
    assert set(request.always.entries) <= {e for a in ("main", "other-1") for e in await store.learned(a)}


async def test_the_deepest_depth_of_a_session_is_kept(store):
    assert await store.deepest("agent:main:sub:1", 2, 10) == 2
    assert await store.deepest("agent:main:sub:1", 1, 20) == 2
    assert await store.deepest("agent:main:sub:1", 3, 30) == 3
    assert await store.deepest("agent:main:main", 0, 40) == 0
