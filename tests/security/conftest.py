"""What several tests of security start from."""

from __future__ import annotations

import pytest

from tests.core_system import CONFIG


@pytest.fixture
def judge(make_system, place):
    """Judge what an agent asks in `place`, which the test makes, with programs of its own below `bin`."""
    tools = {**CONFIG["tools"], "exec": {**CONFIG["tools"]["exec"], "path_prepend": [str(place / "bin")]}}
    agents = {"by_id": {"main": {"workspace": str(place)}}}
    return make_system({**CONFIG, "tools": tools, "agents": agents}).judge
