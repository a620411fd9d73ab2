"""Calls of tools other than exec, judged by their arguments on the way through the gate."""

from __future__ import annotations

import pytest

from core.model.call import ToolCall
from core.model.outcome import Status
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, MAIN, Noting


def rules(tmp_path, **tools):
    return {"tools": {"profile": "coding", "read": {"allow": [f"{tmp_path}/**"]}, **tools}}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "notes").write_text("hello")
    (tmp_path / "other").write_text("other")
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    (tmp_path / "out").symlink_to("/etc/hostname")
    return tmp_path


def reading(path, **fields):
    return ToolCall("Read", MAIN, args={"file_path": str(path)}, **fields)


async def test_a_file_in_the_allowed_tree_may_be_read_on_terms(make_system, files):
    outcome = await make_system(rules(files)).gate.ask(reading(files / "link"), None)
    assert outcome.status is Status.ALLOWED
    terms = {term["kind"]: term for term in outcome.decision["constraints"]}
    assert terms["real-path"]["realPath"] == str(files / "notes")
    assert terms["max-size-bytes"]["bytes"] == 10 * 1024 * 1024


@pytest.mark.parametrize("name", ["out", "../outside", "link/../../etc/passwd"])
async def test_a_path_that_leads_out_of_the_allowed_tree_is_denied(make_system, files, name):
    outcome = await make_system(rules(files)).gate.ask(reading(files / name), None)
    assert outcome.status is Status.DENIED
    assert outcome.decision["layer"] == "tool_policy"
    assert outcome.decision["source"].startswith("tools.read")


async def test_a_relative_path_starts_from_the_cwd_of_the_call(make_system, files):
    gate = make_system(rules(files)).gate
    assert (await gate.ask(reading("notes", cwd=str(files)), None)).status is Status.ALLOWED
    assert (await gate.ask(reading("notes", cwd="/etc"), None)).status is Status.DENIED


async def test_a_path_that_asks_is_put_to_people_and_bound_to_the_file_it_leads_to(make_system, files):
    system = make_system(rules(files, ask={"paths": [f"{files}/**"]}))
    asked = await system.gate.ask(reading(files / "link"), None)
    assert asked.status is Status.PENDING
    review = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=60_000)
    assert (await system.console.resolve(review))["accepted"]
    assert (await system.gate.ask(reading(files / "link"), None)).status is Status.ALLOWED
    assert (await system.gate.ask(reading(files / "other"), None)).status is Status.PENDING
    (files / "link").unlink()
    (files / "link").symlink_to(files / "other")
    assert (await system.gate.ask(reading(files / "link"), None)).status is Status.PENDING


async def test_what_was_denied_always_is_denied_for_the_same_arguments(make_system, files):
    system = make_system(rules(files, ask={"tools": ["read"]}))
    asked = await system.gate.ask(reading(files / "notes"), None)
    await system.console.resolve(Review(asked.request_id, Answer.DENY_ALWAYS, ALICE))
    assert (await system.gate.ask(reading(files / "notes"), None)).decision["rule"] == "denied-always"
    assert (await system.gate.ask(reading(files / "other"), None)).status is Status.PENDING


async def test_a_tool_that_asks_asks_for_exec_too(make_system):
    config = {
        "tools": {"profile": "coding", "ask": {"tools": ["exec"]}, "exec": {"security": "full", "ask": "off"}}
    }
    call = ToolCall("exec", MAIN, args={"argv": ["ls"]})
    assert (await make_system(config).gate.ask(call, None)).status is Status.PENDING


async def test_sayso_own_state_cannot_be_read_whatever_the_rules(make_system, tmp_path):
    (tmp_path / "state").mkdir()
    system = make_system({"tools": {"profile": "coding", "read": {"allow": ["/**"]}}})
    outcome = await system.gate.ask(reading(tmp_path / "state" / "sayso.db"), None)
    assert outcome.status is Status.DENIED


async def test_a_file_outside_the_allowed_tree_is_not_taken_in_by_a_patch_or_as_a_picture(make_system, files):
    gate = make_system(rules(files)).gate
    for outside, status in (("/etc/hostname", Status.DENIED), (files / "notes", Status.ALLOWED)):
        text = f"*** Update File: {outside}\n*** Move to: {files}/x\n@@\n-a\n+b"
        patch = {"input": f"*** Begin Patch\n{text}\n*** End Patch"}
        assert (await gate.ask(ToolCall("apply_patch", MAIN, args=patch), None)).status is status
        picture = {"prompt": "draw", "image": str(outside)}
        assert (await gate.ask(ToolCall("image_generate", MAIN, args=picture), None)).status is status


async def test_nothing_is_typed_into_a_running_command(make_system, files):
    gate = make_system(rules(files)).gate
    typed = {"action": "submit", "sessionId": "a", "data": "rm -rf /"}
    outcome = await gate.ask(ToolCall("process", MAIN, args=typed), None)
    assert (outcome.status, outcome.decision["rule"]) == (Status.DENIED, "process.input")
    looked = await gate.ask(ToolCall("process", MAIN, args={"action": "poll", "sessionId": "a"}), None)
    assert looked.status is Status.ALLOWED


async def test_an_address_inside_is_not_fetched_and_one_that_is_listed_is_on_terms(make_system):
    def fetching(url):
        return ToolCall("WebFetch", MAIN, args={"url": url, "prompt": "what is it"})

    closed = make_system({"tools": {"profile": "coding"}})
    assert (await closed.gate.ask(fetching("http://127.0.0.1/"), None)).status is Status.DENIED
    opened = make_system({"tools": {"profile": "coding", "web_fetch": {"allowedDomains": ["127.0.0.1"]}}})
    outcome = await opened.gate.ask(fetching("http://127.0.0.1/"), None)
    assert outcome.status is Status.ALLOWED
    kinds = [term["kind"] for term in outcome.decision["constraints"]]
    assert kinds == ["connect-to", "judge-redirects", "max-response-bytes"]
    assert (await opened.gate.ask(fetching("http://127.0.0.2/"), None)).status is Status.DENIED


async def test_an_answer_that_a_client_has_taken_is_over_and_not_left_to_expire(make_system, files):
    system = make_system(rules(files, ask={"tools": ["write"]}))
    allowed = await system.gate.ask(reading(files / "notes"), None)
    assert (await system.store.request(allowed.request_id)).state is State.USED
    call = ToolCall("write", MAIN, args={"path": str(files / "new"), "content": "x"})
    asked = await system.gate.ask(call, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    taken = await system.gate.wait("main", asked.request_id, Noting())
    assert taken.status is Status.ALLOWED
    assert (await system.store.request(asked.request_id)).state is State.USED
    assert (await system.gate.ask(call, None)).status is Status.PENDING


async def test_a_permission_for_a_tool_call_is_used_up_like_any_other(make_system, files):
    system = make_system(rules(files, ask={"tools": ["read"]}))
    asked = await system.gate.ask(reading(files / "notes"), None)
    review = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=60_000, max_uses=1)
    await system.console.resolve(review)
    assert (await system.gate.ask(reading(files / "notes"), None)).status is Status.ALLOWED
    assert (await system.gate.ask(reading(files / "notes"), None)).status is Status.PENDING
