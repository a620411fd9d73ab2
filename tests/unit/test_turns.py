"""The event loop's turn beside threads that compute."""

from __future__ import annotations

import gc
import sys

import pytest

from bot.turns import SWITCH_S, take_turns


@pytest.fixture
def as_before():
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()


@pytest.mark.usefixtures("as_before")
def test_threads_give_way_soon_and_what_is_there_is_collected_no_more():
    kept = [object(), {}]
    take_turns()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
    assert gc.get_freeze_count() > 0
    assert not any(each is kept for each in gc.get_objects())
