"""Sayso's own state is out of reach of runs on the host: every way is tried for real, with its control."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.ways_out.driver import SHARES
from tests.security.ways_out.table import WAYS

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(
    scope="module", params=[(who, share) for who in ("root", "user") for share in range(SHARES)], ids=str
)
def tried(request):
    """Try the ways, as a daemon of root that drops for each run, and as one that is the account itself."""
    if os.geteuid() != 0:
        pytest.fail("these worlds are laid out by root, as which this suite has to run")
    command = [sys.executable, "-m", "tests.security.ways_out.driver", *map(str, request.param)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_no_way_out_of_a_held_run_succeeds_and_each_does_in_one_that_is_not_held(tried):
    ways = tried["ways"]
    assert len(ways) > 100 // SHARES
    assert [name for name, each in ways.items() if not each["control"]] == []
    assert [name for name, each in ways.items() if each["held"]] == []
    assert len(WAYS) // SHARES - len(ways) <= 2


def test_a_held_run_can_work_where_its_user_does(tried):
    assert len(tried["work"]) > 5 // SHARES
    assert [name for name, done in tried["work"].items() if not done] == []


def test_what_a_person_allowed_may_write_all_of_the_home(tried):
    assert len(tried["by a person"]) > 30 // SHARES
    assert [name for name, done in tried["by a person"].items() if not done] == []
