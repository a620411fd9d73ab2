"""Killed at any instant, the store has every change it promised, whole.

Run as a script, this file is the writer that is killed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from adapters.stores.sqlite import open_store
from core.audit import verify
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.plan import Binding
from core.model.request import (
    AuditEvent,
    Change,
    Grant,
    MessageKind,
    OutboxMessage,
    Request,
    RequestKind,
    State,
)
from core.model.session import SessionKey

ROOT = Path(__file__).parents[2]
CHANCE = random.SystemRandom()


def request_named(name):
    return Request(
        id=name,
        kind=RequestKind.RUN,
        state=State.WAITING,
        call=ToolCall("exec", SessionKey.main("main"), command=CommandText(line="ls", stdin=b"\xff\0")),
        canonical="/usr/bin/ls",
        cwd="/srv",
        placement=Placement.SANDBOX,
        sandbox=None,
        verdict={},
        binding=Binding(name * 2, ()),
        created_at=1,
        deadline=2,
    )


def life_of(request):
    """All three changes of a request: asked, approved with a grant, started."""
    told = AuditEvent(1, "request.created", "main", request.id)
    grant = Grant(request.id, request.binding.digest, 1, 99)
    entry = AllowlistEntry(f"/bin/{request.id}", real_path="/bin/x")
    post = OutboxMessage("web", MessageKind.POST, request.id, 1)
    update = replace(post, kind=MessageKind.UPDATE)
    yield Change(request, insert=True, events=(told, told), messages=(post,))
    yield Change(
        replace(request, state=State.APPROVED),
        expect=frozenset({State.WAITING}),
        issue_grant=grant,
        learn=AlwaysOffer((entry,)),
        events=(told, told),
        messages=(update,),
    )
    yield Change(
        replace(request, state=State.RUNNING),
        expect=frozenset({State.APPROVED}),
        consume_grant_at=5,
        events=(told, told),
    )


async def write_until_killed(path):
    async with open_store(path) as store:
        for number in count():
            request = request_named(f"{os.getpid():08x}{number:024x}")
            for change in life_of(request):
                assert await store.commit(change)
                os.write(1, f"{request.id} {change.request.state}\n".encode())


def kill_a_writer(path):
    """Return the last state that each request was told to have when its writer was killed."""
    with subprocess.Popen(
        [sys.executable, __file__, str(path)], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    ) as child:
        first = child.stdout.readline()
        timer = CHANCE.uniform(0, 0.15)
        try:
            child.wait(timer)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        told = first + child.stdout.read()
    assert child.returncode == -signal.SIGKILL
    return dict(line.split() for line in told.decode().splitlines())


EXPECTED_EVENTS = {State.WAITING: 2, State.APPROVED: 4, State.RUNNING: 6}
ORDER = [State.WAITING, State.APPROVED, State.RUNNING]


async def check_whole(store, request):
    """Whatever state a request is in, all that was committed with that state is there, and nothing more."""
    events = await store.events_about(request.id)
    assert len(events) == EXPECTED_EVENTS[request.state]
    learned = [e for e in await store.learned("main") if e.pattern == f"/bin/{request.id}"]
    assert len(learned) == (request.state is not State.WAITING)
    started_again = Change(request, expect=frozenset({request.state}), consume_grant_at=5)
    assert await store.commit(started_again) is (request.state is State.APPROVED)


@pytest.mark.timeout(120)
async def test_a_store_killed_ten_times_has_everything_it_promised_and_nothing_by_half(tmp_path):
    path = tmp_path / "sayso.db"
    told = {}
    for _ in range(10):
        told |= await asyncio.to_thread(kill_a_writer, path)
        async with open_store(path) as store:
            assert (await verify(store)).ok
    sys.stdout.write(f"\n{len(told)} requests were told as kept before ten kills\n")
    assert len(told) >= 10
    async with open_store(path) as store:
        kept = {request.id: request for request in await store.in_states(*ORDER)}
        assert told.keys() <= kept.keys()
        for name, state in told.items():
            assert ORDER.index(kept[name].state) >= ORDER.index(State(state))
        assert len(kept) <= len(told) + 10
        unpromised = [request for request in kept.values() if told.get(request.id) != request.state]
        assert len(unpromised) <= 10
        sample = CHANCE.sample(list(kept.values()), min(40, len(kept)))
        for request in {request.id: request for request in (*unpromised, *sample)}.values():
            await check_whole(store, request)
        assert (await verify(store)).ok


if __name__ == "__main__":
    asyncio.run(write_until_killed(Path(sys.argv[1])))
