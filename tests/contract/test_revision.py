"""RevisionStore: the number that grows with all that can forbid, and the changes that are held against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.approvals import lifecycle
from core.model.allowlist import AllowlistEdit, AllowlistEntry, EntryUse, KeptEntry
from core.model.elevation import Elevation, Level
from core.model.pairing import PairedPerson
from core.model.principal import Reviewer, Sender
from core.model.request import AgentRecord, Answer, AuditEvent, Basis, RequestKind, Review
from core.model.session_modes import SessionModes
from core.model.tightening import AgentLimits, DocumentSettings

ANN = Reviewer("telegram", "7", "Ann")
BEA = PairedPerson("telegram", "8", "Bea", "", 1)
ENTRY = KeptEntry("e" * 8, AllowlistEntry("/usr/bin/rg"), (), 1)


def event(kind="test.happened", at=50):
    return AuditEvent(at, kind, "test")


async def asked(store, new_request, **fields):
    request = new_request(**fields)
    assert await store.commit(lifecycle.asked(request, 1))
    return request


async def answered(store, new_request, answer, **fields):
    request = await asked(store, new_request)
    change = lifecycle.reviewed(request, Review(request.id, answer, ANN, **fields), 10)
    assert await store.commit(change)
    return change.request


async def entry(store):
    kept = await store.exec_approvals()
    assert await store.edit_allowlist(kept.revision, AllowlistEdit(put=(ENTRY,)), event())


async def lock(store, _new_request):
    return lambda: store.set_locked(locked=True, event=event())


async def unlock(store, _new_request):
    return lambda: store.set_locked(locked=False, event=event())


async def revoke_token(store, _new_request):
    await store.put_agent(AgentRecord("main", "a" * 64, 1), event())
    return lambda: store.revoke_agent("main", event())


async def renew_token(store, new_request):
    await (await revoke_token(store, new_request))()
    return lambda: store.put_agent(AgentRecord("main", "b" * 64, 1), event())


async def deny_always(store, new_request):
    request = await asked(store, new_request)
    change = lifecycle.reviewed(request, Review(request.id, Answer.DENY_ALWAYS, ANN), 10)
    return lambda: store.commit(change)


async def revoke_permission(store, new_request):
    request = await answered(store, new_request, Answer.ALLOW_FOR, for_ms=60_000)
    return lambda: store.end_permission(request.id, event())


async def remove_entry(store, _new_request):
    await entry(store)
    kept = await store.exec_approvals()
    return lambda: store.edit_allowlist(kept.revision, AllowlistEdit(remove=(ENTRY.id,)), event())


async def tighten_document(store, _new_request):
    kept = await store.exec_approvals()
    edit = AllowlistEdit(settings=DocumentSettings(AgentLimits(security="deny")))
    return lambda: store.edit_allowlist(kept.revision, edit, event())


def elevation(level=Level.FULL):
    return Elevation(f"id-{level}", "agent:main:main", level, Sender("cli", "0", "root"), 1, 60_000)


async def tighten_session(store, _new_request):
    return lambda: store.tighten_session(SessionModes("agent:main:main", "deny", None, 1), event())


async def tighten_session_more(store, new_request):
    await (await tighten_session(store, new_request))()
    return lambda: store.tighten_session(SessionModes("agent:main:main", None, "always", 2), event())


async def elevate(store, _new_request):
    return lambda: store.elevate(elevation(), event())


async def end_session(store, _new_request):
    await store.elevate(elevation(), event())
    return lambda: store.end_session("agent:main:main", event())


async def unpair(store, _new_request):
    await store.put_paired(BEA, event())
    return lambda: store.unpair(BEA, event())


async def revise(store, _new_request):
    return store.revise


@pytest.mark.parametrize(
    "prepare",
    [
        lock,
        unlock,
        revoke_token,
        renew_token,
        deny_always,
        revoke_permission,
        remove_entry,
        tighten_document,
        tighten_session,
        tighten_session_more,
        elevate,
        end_session,
        unpair,
        revise,
    ],
)
async def test_it_grows_with_everything_that_can_forbid(store, new_request, prepare):
    forbid = await prepare(store, new_request)
    before = await store.revision()
    await forbid()
    assert await store.revision() > before


async def test_it_stays_while_requests_come_and_go_and_entries_are_used(store, new_request):
    await entry(store)
    await store.put_agent(AgentRecord("main", "a" * 64, 1), event())
    before = await store.revision()
    await answered(store, new_request, Answer.ALLOW_ALWAYS)
    permitted = await answered(store, new_request, Answer.ALLOW_FOR, for_ms=60_000, max_uses=2)
    uses = new_request(kind=RequestKind.ASK, permission=permitted.id)
    assert await store.commit(lifecycle.allowed(uses, 20))
    assert await store.commit(lifecycle.refused(new_request(), 20))
    await store.record_uses([EntryUse(ENTRY.id, "rg x", "/usr/bin/rg")], 30)
    await store.append(event())
    assert await store.revision() == before


async def test_what_it_grows_for_can_be_recorded_with_it(store):
    await store.revise(event("tools.unregistered"))
    assert [link.event.kind async for link in store.events()] == ["tools.unregistered"]


@pytest.mark.parametrize("step", [lifecycle.allowed, lifecycle.asked])
async def test_what_was_decided_before_is_not_kept_and_what_was_decided_after_is(store, new_request, step):
    outdated = Basis(await store.revision())
    await store.revise()
    request = new_request()
    assert not await store.commit(replace(step(request, 1), basis=outdated))
    assert await store.request(request.id) is None
    assert await store.commit(replace(step(request, 1), basis=Basis(await store.revision())))


async def test_a_start_is_held_against_the_credential_of_its_call(store, new_request):
    await store.put_agent(AgentRecord("main", "a" * 64, 1), event())
    await store.put_agent(AgentRecord("other", "c" * 64, 1), event())
    await store.revoke_agent("main", event())
    await store.put_agent(AgentRecord("main", "b" * 64, 1), event())
    now = await store.revision()
    for credential in ("a" * 64, "c" * 64, ""):
        change = replace(lifecycle.allowed(new_request(), 1), basis=Basis(now, credential))
        assert not await store.commit(change), credential
    change = replace(lifecycle.allowed(new_request(), 1), basis=Basis(now, "b" * 64))
    assert await store.commit(change)


@pytest.mark.parametrize("step", [lifecycle.withdrawn, lifecycle.expired])
async def test_a_change_that_knows_nothing_of_an_answer_is_refused(store, new_request, step):
    request = await asked(store, new_request, required=2)
    one = lifecycle.counted(request, Review(request.id, Answer.ALLOW_ONCE, ANN), 10)
    assert await store.commit(one)
    assert not await store.commit(step(request, 20))
    assert await store.commit(step(one.request, 20))
    assert len((await store.request(request.id)).reviews) == 1


async def test_a_yes_for_a_time_starts_nothing_once_its_permission_was_revoked(store, new_request):
    revoked = await answered(store, new_request, Answer.ALLOW_FOR, for_ms=60_000)
    stands = await answered(store, new_request, Answer.ALLOW_FOR, for_ms=60_000)
    assert await store.end_permission(revoked.id, event())
    assert not await store.commit(lifecycle.started(revoked, 60))
    assert await store.commit(lifecycle.started(stands, 60))


async def test_a_use_that_was_taken_for_this_call_does_not_hide_its_permission(store, new_request):
    permitted = await answered(store, new_request, Answer.ALLOW_FOR, for_ms=60_000, max_uses=1)
    uses = new_request(kind=RequestKind.ASK, permission=permitted.id)
    assert await store.commit(lifecycle.allowed(uses, 20))
    binding = permitted.binding.digest
    assert (await store.remembered("main", binding, 30)).permission is None
    assert (await store.remembered("main", binding, 30, (), "another")).permission is None
    assert (await store.remembered("main", binding, 30, (), permitted.id)).permission.id == permitted.id
    assert (await store.remembered("main", binding, 70_000, (), permitted.id)).permission is None
