"""The table of transitions in docs/approvals.md is the one that core.approvals.lifecycle makes."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path

from core.approvals import lifecycle
from core.approvals.rehearsal import TESTER
from core.model.plan import RunResult, RunStatus
from core.model.principal import Reviewer
from core.model.request import Answer, Change, RequestKind, Review, State

DOC = Path(__file__).parents[3] / "docs" / "approvals.md"
ROW = re.compile(r"^\| (\(new\)|[a-z]+) \| ([a-z]+) \|", re.MULTILINE)
ALICE = Reviewer("web", "operator", "operator")
RESULT = RunResult(RunStatus.FINISHED, 0, "", "", 0, 0, 1)


def documented():
    known = {state.value for state in State} | {"(new)"}
    return {(old, new) for old, new in ROW.findall(DOC.read_text("utf-8")) if old in known}


def steps(make_request):
    """Yield every function of the lifecycle with a request that it is for."""
    waiting = make_request()
    review = Review(waiting.id, Answer.ALLOW_ONCE, ALICE)
    rehearsal = replace(
        waiting, call=replace(waiting.call, session=replace(waiting.call.session, agent=TESTER), tool=TESTER)
    )
    tested = replace(rehearsal, kind=RequestKind.ASK)
    approved, running = replace(waiting, state=State.APPROVED), replace(waiting, state=State.RUNNING)
    yield "asked", lifecycle.asked(waiting, 1)
    yield "allowed", lifecycle.allowed(waiting, 1)
    yield "allowed", lifecycle.allowed(replace(waiting, kind=RequestKind.ASK), 1)
    yield "refused", lifecycle.refused(waiting, 1)
    yield "counted", lifecycle.counted(replace(waiting, required=2), review, 1)
    yield "reviewed", lifecycle.reviewed(waiting, review, 1)
    yield "reviewed", lifecycle.reviewed(waiting, replace(review, answer=Answer.DENY), 1)
    yield "reviewed", lifecycle.reviewed(tested, review, 1)
    yield "fell_back", lifecycle.fell_back(waiting, 1)
    yield "started", lifecycle.started(approved, 1)
    yield "used", lifecycle.used(approved, 1)
    yield "finished", lifecycle.finished(running, RESULT, 1)
    yield "failed", lifecycle.failed(running, "why", 1)
    yield "mismatched", lifecycle.mismatched(approved, "why", 1)
    yield "mismatched", lifecycle.mismatched(running, "why", 1)
    yield "interrupted", lifecycle.interrupted(running, "why", 1)
    yield "expired", lifecycle.expired(waiting, 1)
    yield "expired", lifecycle.expired(approved, 1)
    yield "withdrawn", lifecycle.withdrawn(waiting, 1)
    yield "called_off", lifecycle.called_off(waiting, "why", 1)


def test_the_table_has_every_transition_and_no_other(make_request):
    made = set()
    for _, change in steps(make_request):
        olds = ["(new)"] if change.insert else sorted(state.value for state in change.expect)
        assert olds
        made |= {(old, change.request.state.value) for old in olds}
    assert made == documented()


def test_every_step_of_the_lifecycle_is_looked_at(make_request):
    public = {
        name
        for name, step in inspect.getmembers(lifecycle, inspect.isfunction)
        if step.__module__ == lifecycle.__name__
        and not name.startswith("_")
        and inspect.signature(step).return_annotation in (Change, "Change")
    }
    assert public == {name for name, _ in steps(make_request)}


def test_nothing_leaves_a_final_state(make_request):
    final = {state for state in State if state.final}
    for name, change in steps(make_request):
        assert not change.expect & final, name
