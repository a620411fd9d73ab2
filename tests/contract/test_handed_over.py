"""A yes to what a client carries out holds for what was judged, and is handed over only while it does."""

from __future__ import annotations

import pytest

from core.model.call import ToolCall
from core.model.outcome import Status
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, MAIN, Noting

ASKS = {"tools": {"profile": "coding", "ask": {"tools": ["write", "edit", "apply_patch"]}}}


@pytest.fixture
def files(tmp_path):
    """A link to a file, one to a directory, and what both may lead to instead."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text("hello")
    (tmp_path / "link").symlink_to(tmp_path / "one" / "notes")
    (tmp_path / "dir").symlink_to(tmp_path / "one")
    return tmp_path


def writing(files, path):
    return ToolCall("Write", MAIN, args={"file_path": str(files / path), "content": "x"})


def editing(files, path):
    args = {"file_path": str(files / path), "old_string": "hello", "new_string": "x"}
    return ToolCall("Edit", MAIN, args=args)


def patching(files, path):
    text = f"*** Begin Patch\n*** Update File: {files / path}\n@@\n-hello\n+x\n*** End Patch"
    return ToolCall("apply_patch", MAIN, args={"input": text})


def elsewhere(link):
    link.unlink()
    link.symlink_to(link.parent / "two" / ("notes" if link.name == "link" else ""))


async def approved(system, call, answer=Answer.ALLOW_ONCE, **fields):
    asked = await system.gate.ask(call, None)
    assert asked.status is Status.PENDING, asked.reason
    told = await system.console.resolve(Review(asked.request_id, answer, ALICE, **fields))
    assert told["accepted"], told
    return asked.request_id


@pytest.mark.parametrize("call", [writing, editing, patching])
@pytest.mark.parametrize("path", ["link", "dir/notes"])
async def test_a_link_that_leads_elsewhere_since_the_yes_is_no_yes(make_system, files, call, path):
    system = make_system(ASKS)
    request_id = await approved(system, call(files, path))
    elsewhere(files / path.partition("/")[0])
    outcome = await system.gate.wait("main", request_id, Noting())
    assert outcome.status is Status.DENIED
    assert outcome.reason.startswith("approval binding mismatch: paths changed")
    assert (await system.store.request(request_id)).state is State.DENIED


@pytest.mark.parametrize("call", [writing, editing, patching])
@pytest.mark.parametrize("path", ["link", "dir/notes"])
async def test_one_that_leads_where_it_did_is_handed_over_on_terms(make_system, files, call, path):
    system = make_system(ASKS)
    request_id = await approved(system, call(files, path))
    outcome = await system.gate.wait("main", request_id, Noting())
    assert outcome.status is Status.ALLOWED
    terms = {term["kind"]: term for term in outcome.decision["constraints"]}
    assert terms["real-path"]["realPath"] == str(files / "one" / "notes")


async def test_a_file_that_became_a_link_since_the_yes_is_no_yes(make_system, files):
    system = make_system(ASKS)
    request_id = await approved(system, writing(files, "one/notes"))
    (files / "one" / "notes").unlink()
    (files / "one" / "notes").symlink_to(files / "two" / "notes")
    outcome = await system.gate.wait("main", request_id, Noting())
    assert (outcome.status, "paths changed" in outcome.reason) == (Status.DENIED, True)


async def test_a_yes_that_ended_so_stays_ended_when_the_link_is_put_back(make_system, files):
    system = make_system(ASKS)
    request_id = await approved(system, writing(files, "link"))
    elsewhere(files / "link")
    assert (await system.gate.wait("main", request_id, Noting())).status is Status.DENIED
    (files / "link").unlink()
    (files / "link").symlink_to(files / "one" / "notes")
    assert (await system.gate.wait("main", request_id, Noting())).status is Status.DENIED


async def test_a_path_that_is_denied_by_now_is_not_handed_over_whatever_was_answered(make_system, files):
    system = make_system(ASKS)
    request_id = await approved(system, writing(files, "link"))
    denying = {"tools": {**ASKS["tools"], "write": {"deny": [f"{files}/one/**"]}}}
    system.judge = make_system(denying).judge
    assert (await system.gate.wait("main", request_id, Noting())).status is Status.DENIED
    assert (await system.store.request(request_id)).state is State.DENIED
