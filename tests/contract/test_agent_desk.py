"""The contract of AgentDesk, Console and Gatekeeper, kept by the gate over a real store and resolver.

Also what a RunObserver is told, and when.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import BindingMismatch, RequestError, RunError, UnknownRequest
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.history import HistoryQuery
from core.model.outcome import Status
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, CONFIG, MAIN, Noting, exec_call


async def test_what_a_rule_admits_runs_without_asking(system):
    outcome = await system.gate.run(exec_call("git", "--version"), None, Noting())
    assert outcome.status is Status.FINISHED
    assert [order.argv for order in system.orders] == [("/usr/bin/git", "--version")]


@pytest.mark.parametrize(
    "line", ["git --version > f", "git --version $(id)", "sayso approve 12345678", "git --version; )", ""]
)
async def test_what_is_refused_never_reaches_a_runner(system, line):
    outcome = await system.gate.run(exec_call(line=line), None, Noting())
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"]
    assert system.orders == []


async def test_a_tool_outside_the_set_is_denied_by_layer_one(system):
    outcome = await system.gate.ask(ToolCall("browser", MAIN), None)
    assert outcome.status is Status.DENIED
    assert outcome.decision["layer"] == "tool_policy"


async def test_an_agent_whose_exec_is_denied_cannot_run_what_the_allowlist_admits(make_system):
    system = make_system({**CONFIG, "tools": {**CONFIG["tools"], "deny": ["exec"]}})
    outcome = await system.gate.run(exec_call("git", "--version"), None, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_nothing_runs_before_the_answer_and_one_run_follows_a_yes(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    assert system.orders == []
    (waiting,) = await system.console.pending()
    answer = await system.console.resolve(Review(waiting["id"][:8], Answer.ALLOW_ONCE, ALICE))
    assert answer["accepted"]
    assert (await task).status is Status.FINISHED
    assert len(system.orders) == 1
    assert ("stdout", b"hello\n") in observer.seen


async def test_nothing_runs_after_a_no_and_the_reason_reaches_the_agent(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.DENY, ALICE, "use the cache"))
    outcome = await task
    assert outcome.status is Status.DENIED
    assert "use the cache" in outcome.reason
    assert system.orders == []


async def test_with_nobody_to_ask_the_answer_is_no_at_once(make_system):
    system = make_system(routes=())
    outcome = await system.gate.run(exec_call("ls"), None, Noting())
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "no-approval-route"


async def test_an_asker_that_hangs_up_leaves_the_question_open_and_can_join_again(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    task.cancel()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, ALICE))
    assert system.orders == []
    outcome = await system.gate.wait("main", waiting["id"], Noting())
    assert outcome.status is Status.FINISHED
    assert len(system.orders) == 1


async def test_a_yes_does_not_run_twice_for_two_who_wait(system):
    first, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    others = [asyncio.create_task(system.gate.wait("main", waiting["id"], Noting())) for _ in range(20)]
    async with asyncio.timeout(30):
        while len(system.ledger._waiters[waiting["id"]]) < 21:  # noqa: ASYNC110 - nothing tells of that
            await asyncio.sleep(0.005)
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, ALICE))
    outcomes = await asyncio.gather(first, *others)
    assert {outcome.status for outcome in outcomes} == {Status.FINISHED}
    assert len(system.orders) == 1


async def test_another_agent_can_neither_wait_for_nor_withdraw_a_request(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    with pytest.raises(UnknownRequest):
        await system.gate.wait("other", waiting["id"], Noting())
    with pytest.raises(UnknownRequest):
        await system.gate.withdraw("other", waiting["id"])
    assert (await system.console.pending())[0]["id"] == waiting["id"]
    await system.gate.withdraw("main", waiting["id"])
    assert (await task).status is Status.WITHDRAWN


async def test_what_changed_between_the_yes_and_the_run_is_named_and_not_run(system, tmp_path):
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\necho one\n")
    script.chmod(0o755)
    task, observer = system.asking(exec_call(str(script)))
    await observer.asked.wait()
    task.cancel()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, ALICE))
    script.write_text("#!/bin/sh\necho two\n")
    outcome = await system.gate.wait("main", waiting["id"], Noting())
    assert outcome.status is Status.DENIED
    assert "approval binding mismatch: executables" in outcome.reason
    assert f"no longer what was looked at: {script}; nothing of it ran, ask again" in outcome.reason
    assert system.orders == []


async def test_an_approval_asked_for_first_counts_once_and_for_its_command_alone(system):
    asked = await system.gate.ask(exec_call("ls", "-l"), None)
    assert asked.status is Status.PENDING
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    other = await system.gate.run_approved(exec_call("ls", "-a"), asked.request_id, Noting())
    assert other.status is Status.DENIED
    assert system.orders == []

    asked = await system.gate.ask(exec_call("ls", "-l"), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    ran = await system.gate.run_approved(exec_call("ls", "-l"), asked.request_id, Noting())
    again = await system.gate.run_approved(exec_call("ls", "-l"), asked.request_id, Noting())
    assert ran.status is Status.FINISHED
    assert len(system.orders) == 1
    assert again.request_id == ran.request_id


async def test_a_locked_gate_denies_what_a_rule_admits_and_ends_what_runs(system):
    runner = system.runners[Placement.SANDBOX]
    runner.hold = asyncio.Event()
    task, observer = system.asking(exec_call("git", "--version"))
    await observer.started.wait()
    await system.console.set_locked(locked=True, reviewer=ALICE)
    outcome = await task
    assert outcome.status is Status.INTERRUPTED
    assert "locked by alice" in outcome.reason
    denied = await system.gate.run(exec_call("git", "--version"), None, Noting())
    assert denied.decision["rule"] == "locked"
    await system.console.set_locked(locked=False, reviewer=ALICE)
    runner.hold = None
    assert (await system.gate.run(exec_call("git", "--version"), None, Noting())).status is Status.FINISHED


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (RunError("no sandbox"), Status.FAILED),
        (BindingMismatch(("cwd",)), Status.DENIED),
        (ZeroDivisionError("a bug"), Status.FAILED),
    ],
)
async def test_a_fault_of_the_runner_is_an_outcome(system, fault, status):
    system.runners[Placement.SANDBOX].fault = fault
    outcome = await system.gate.run(exec_call("git", "--version"), None, Noting())
    assert outcome.status is status
    assert outcome.reason


async def test_cancelling_ends_the_run_and_says_who_did(system):
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(exec_call("git", "--version"))
    await observer.started.wait()
    (running,) = [row for row in await system.console.history(HistoryQuery(5)) if row["state"] == "running"]
    assert (await system.console.cancel(running["id"], ALICE))["accepted"]
    outcome = await task
    assert outcome.status is Status.INTERRUPTED
    assert "alice" in outcome.reason
    assert not (await system.console.cancel(running["id"], ALICE))["accepted"]


async def test_claims_can_tighten_a_call_and_never_loosen_it(make_system):
    on_host = make_system({**CONFIG, "sandboxing": {"mode": "off"}})
    in_sandbox = make_system(CONFIG)
    row = {"command": "git --version"}
    assert (await on_host.console.explain(row))["placement"] == "host"
    assert (await on_host.console.explain({**row, "sandboxed": True}))["placement"] == "sandbox"
    assert (await in_sandbox.console.explain({**row, "sandboxed": False}))["placement"] == "sandbox"


async def test_an_entry_for_the_sandbox_does_not_count_on_the_host(make_system):
    on_host = make_system({**CONFIG, "sandboxing": {"mode": "off"}})
    assert (await on_host.console.explain({"command": "git --version"}))["effect"] == "ask"


async def test_asking_for_elevation_is_refused_with_its_rule(system):
    call = replace(exec_call("git", "--version"), elevated="full")
    outcome = await system.gate.run(call, None, Noting())
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "elevated.disabled"


async def test_a_cwd_the_sandbox_does_not_show_is_refused_or_replaced_as_the_asker_says(system):
    required = await system.gate.run(exec_call("git", "--version", cwd="/root"), None, Noting())
    assert required.status is Status.DENIED
    assert required.decision["rule"] == "exec.cwd"
    call = exec_call("git", "--version", cwd="/root", cwd_preferred=True)
    preferred = await system.gate.run(call, None, Noting())
    assert preferred.status is Status.FINISHED
    assert "/workspaces/" in preferred.cwd


async def test_the_verdict_of_explain_is_the_verdict_of_the_gate(system):
    for line in ("git --version", "git status", "ls > f", "sudo ls"):
        explained = await system.console.explain({"command": line})
        case, verdict = await system.gate.consider(exec_call(line=line))
        assert explained["effect"] == str(verdict.effect)
        assert explained["canonical"] == case.facts.canonical


async def test_explaining_leaves_no_trace(system):
    await system.console.explain({"command": "git status"})
    assert await system.console.pending() == []
    assert await system.console.history(HistoryQuery(10)) == []


async def test_ids_are_found_by_a_unique_prefix_of_at_least_eight_characters(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    assert (await system.console.show(waiting["id"][:8]))["id"] == waiting["id"]
    for wrong in (waiting["id"][:7], "", "ffffffff-not-there", "%" * 8):
        with pytest.raises(UnknownRequest):
            await system.console.show(wrong)
    task.cancel()


async def test_tokens_name_their_agent_until_they_are_revoked(system):
    minted = await system.console.add_agent("guest")
    assert await system.credentials.agent(minted["token"]) == "guest"
    assert await system.credentials.agent(minted["token"] + "x") is None
    with pytest.raises(RequestError, match="revoke"):
        await system.console.add_agent("guest")
    await system.console.revoke_agent("guest")
    assert await system.credentials.agent(minted["token"]) is None
    assert not system.credentials.operator(minted["token"])
    assert system.credentials.operator("operator-token")
    for bad in ("", "Main", "a b", "../x"):
        with pytest.raises(RequestError):
            await system.console.add_agent(bad)


async def test_no_token_is_kept_as_text(system, tmp_path):
    minted = await system.console.add_agent("guest")
    assert minted["token"].encode() not in _all_bytes(tmp_path)


def _all_bytes(folder):
    return b"".join(path.read_bytes() for path in Path(folder).glob("sayso.db*"))


async def test_the_record_tells_the_whole_story(system):
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.ALLOW_ONCE, ALICE, "fine"))
    await task
    shown = await system.console.show(waiting["id"])
    assert [event["kind"] for event in shown["record"]] == [
        "request.created", "approval.requested", "approval.approved", "run.started", "run.finished",
    ]  # fmt: skip
    assert shown["state"] == State.FINISHED.value
    assert (await system.console.audit_verify())["ok"]
    assert [event["kind"] for event in await system.console.audit_tail(2)] == ["run.started", "run.finished"]


async def test_subscribers_learn_of_each_step(system):
    seen = []
    notifications = system.console.subscribe()

    async def listen():
        seen.extend([(await anext(notifications))["method"] for _ in range(2)])

    listener = asyncio.create_task(listen())
    await asyncio.sleep(0)
    task, observer = system.asking(exec_call("ls"))
    await observer.asked.wait()
    (waiting,) = await system.console.pending()
    await system.console.resolve(Review(waiting["id"], Answer.DENY, ALICE))
    await task
    await asyncio.wait_for(listener, 5)
    await notifications.aclose()
    assert seen == ["exec.approval.requested", "exec.approval.resolved"]


async def test_who_comes_back_for_an_answer_that_is_being_used_waits_for_the_end_of_its_run(system):
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    asked = await system.gate.ask(exec_call("ls", "-l"), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    observer = Noting()
    run = asyncio.create_task(system.gate.run_approved(exec_call("ls", "-l"), asked.request_id, observer))
    await observer.started.wait()
    back = asyncio.create_task(system.gate.wait("main", asked.request_id, Noting()))
    await asyncio.sleep(0.05)  # time enough to be told too early: nothing tells that it still waits
    assert not back.done()
    system.runners[Placement.SANDBOX].hold.set()
    assert (await back).status is (await run).status is Status.FINISHED
