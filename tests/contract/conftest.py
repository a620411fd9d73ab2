from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import pytest

from adapters.stores.sqlite import open_store
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.plan import Binding
from core.model.request import Request, RequestKind, State
from core.model.session import SessionKey


@pytest.fixture(params=["sqlite"])
def open_any_store(request, tmp_path):
    """Open the store under test; each call opens what the one before it left."""
    openers = {"sqlite": lambda: open_store(tmp_path / "sayso.db")}

    @asynccontextmanager
    async def opener():
        async with openers[request.param]() as store:
            yield store

    return opener


@pytest.fixture
async def store(open_any_store):
    async with open_any_store() as opened:
        yield opened


@pytest.fixture
def new_request():
    """Make a waiting request with an id of its own; keywords replace fields."""
    numbers = count(1)

    def make(**fields):
        number = next(numbers)
        command = CommandText(line="ls -l", env=(("A", "1"),))
        request = Request(
            id=f"{number:032x}",
            kind=RequestKind.RUN,
            state=State.WAITING,
            call=ToolCall("exec", SessionKey.main("main"), command=command, args={"line": "ls -l"}),
            canonical="/usr/bin/ls -l",
            cwd="/srv",
            placement=Placement.SANDBOX,
            sandbox="bubblewrap",
            verdict={"effect": "ask", "trace": []},
            binding=Binding("b" * 64, (("command", "c" * 64),)),
            created_at=1_000 + number,
            deadline=121_000,
        )
        return replace(request, **fields)

    return make
