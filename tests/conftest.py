"""What every test may use: a clock that tests turn, and requests to put into a store."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.call import CommandText, ToolCall
from core.model.command import Directory, Placement
from core.model.plan import Binding
from core.model.request import Request, RequestKind, State
from core.model.session import SessionKey

pytest_plugins = (
    "tests.channel_desk",
    "tests.core_system",
    "tests.permission_desk",
    "tests.session_desk",
    "tests.platforms.telegram.plugin",
)

# Tests find no daemon but their own, and theirs share no place with that of whoever runs them.
for variable in ("SAYSO_SOCKET", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
    os.environ.pop(variable, None)

# A shell's background job ignores Ctrl-C, and every process that it starts would: some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


PROJECT = Directory("/srv/project", 1, 1)


class ManualClock:
    """A clock that only moves when it is told to."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.wall = now
        self.steady = 0.0

    def now(self) -> int:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def advance(self, ms: int) -> None:
        self.wall += ms
        self.steady += ms / 1000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def make_request(clock: ManualClock) -> Callable[..., Request]:
    """Make a waiting request for `rm -rf build`; keyword arguments replace fields."""

    def make(request_id: str = "11111111-aaaa-4aaa-8aaa-000000000001", **fields: Any) -> Request:
        entry = AllowlistEntry(
            "/usr/bin/rm", ("-rf", "build"), real_path="/usr/bin/rm", agent="main", directory=PROJECT
        )
        request = Request(
            id=request_id,
            kind=RequestKind.RUN,
            state=State.WAITING,
            call=ToolCall("exec", SessionKey.main("main"), command=CommandText(argv=("rm", "-rf", "build"))),
            canonical="/usr/bin/rm -rf build",
            cwd="/srv/project",
            placement=Placement.SANDBOX,
            sandbox="bubblewrap",
            verdict={
                "effect": "ask",
                "reason": "rm is not on the allowlist",
                "rule": "exec.allowlist-miss",
                "source": "tools.exec.ask",
            },
            binding=Binding("b" * 64, (("command", "c" * 64),)),
            created_at=clock.now(),
            deadline=clock.now() + 120_000,
            always=AlwaysOffer((entry,), ("exactly `rm -rf build` in /srv/project, in the sandbox",)),
        )
        return replace(request, **fields)

    return make
