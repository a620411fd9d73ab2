"""What every Clock promises."""

from __future__ import annotations

import time

import pytest

from bot.clock import SystemClock


@pytest.fixture(params=["system", "manual"])
def any_clock(request, clock):
    return SystemClock() if request.param == "system" else clock


def test_now_is_whole_milliseconds_since_the_epoch(any_clock):
    assert isinstance(any_clock.now(), int)
    assert 1_600_000_000_000 < any_clock.now() < 5_000_000_000_000


def test_the_steady_clock_never_goes_back(any_clock):
    readings = [any_clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


def test_the_system_clock_is_the_machines():
    assert abs(SystemClock().now() - time.time() * 1000) < 1000
