"""A thousand connections that wait at once, and readers that do not read."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

CROWD = 1_000


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * CROWD:
        pytest.skip(f"a process may have only {hard} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * CROWD), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_wait_at_once_and_each_is_answered(site, request_id):
    peers = await asyncio.gather(*(site.agent() for _ in range(CROWD)))
    calls = [peer.start("exec.approval.waitDecision", id=request_id) for peer in peers]
    late = await site.agent()
    assert "result" in await late.call("session.describe")
    site.desk.answered.set()
    answers = await asyncio.gather(*(peer.answer(call) for peer, call in zip(peers, calls, strict=True)))
    assert sum("result" in answer for answer in answers) == CROWD


@pytest.mark.timeout(60)
async def test_a_subscriber_that_does_not_read_is_cut_off_and_memory_does_not_grow(site, until):
    deaf = await site.operator()
    assert "result" in await deaf.call("events.subscribe")
    deaf.writer.transport.pause_reading()
    before = resident_mb()
    event = {"method": "exec.approval.requested", "params": {"command": "x" * 200_000}}
    for _ in range(1_000):
        site.console.events.put_nowait(event)  # 200 MB in all, were it kept
    await until(lambda: site.console.events.empty() or len(site.ingress._connections) == 0)
    await until(lambda: len(site.ingress._connections) == 0)
    assert resident_mb() - before < 120
    hears = await site.operator()
    assert "result" in await hears.call("exec.approval.list")
