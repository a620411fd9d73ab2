"""What a commit costs here; figures are printed, not judged."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from adapters.stores.sqlite import open_store
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.plan import Binding
from core.model.request import (
    AuditEvent,
    Change,
    MessageKind,
    OutboxMessage,
    Request,
    RequestKind,
    State,
)
from core.model.session import SessionKey


def change_of(number):
    name = f"{number:032x}"
    request = Request(
        id=name,
        kind=RequestKind.RUN,
        state=State.WAITING,
        call=ToolCall("exec", SessionKey.main("main"), command=CommandText(line="git status | wc -l")),
        canonical="/usr/bin/git status | /usr/bin/wc -l",
        cwd="/srv",
        placement=Placement.SANDBOX,
        sandbox="bubblewrap",
        verdict={"effect": "ask", "trace": [{"layer": "exec_security", "effect": "ask"}] * 4},
        binding=Binding("b" * 64, (("command", "c" * 64),) * 9),
        created_at=number,
        deadline=2,
    )
    told = AuditEvent(number, "request.created", "main", name, {"canonical": request.canonical})
    message = OutboxMessage("web", MessageKind.POST, name, 1)
    return Change(request, insert=True, events=(told, told), messages=(message,))


async def test_the_time_of_a_commit_is_printed(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        times = []
        for number in range(300):
            begin = time.perf_counter()
            assert await store.commit(change_of(number))
            times.append((time.perf_counter() - begin) * 1000)
        begin = time.perf_counter()
        assert all(await asyncio.gather(*(store.commit(change_of(number)) for number in range(1_000, 1_500))))
        rate = 500 / (time.perf_counter() - begin)
        begin = time.perf_counter()
        for number in range(300):
            assert await store.request(f"{number:032x}")
        read = (time.perf_counter() - begin) / 300 * 1000
    median, worst = statistics.median(times), max(times)
    sys.stdout.write(
        f"\none commit {median:.2f} ms (worst {worst:.2f}), {rate:.0f} commits/s queued,"
        f" one read {read:.2f} ms\n"
    )
