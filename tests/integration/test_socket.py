"""The socket: hello, roles, several calls at a time, and peers that misbehave."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pwd

import pytest

from adapters.ingress.agent_methods import AGENT_METHODS
from adapters.ingress.connection import Connection, Service
from adapters.ingress.jsonrpc import VALUES_LIMIT
from adapters.ingress.operator_methods import OPERATOR_METHODS
from core.credentials import digest
from core.model.principal import PeerCredentials
from tests.desks import some_desks


async def test_an_agent_says_hello_and_is_told_who_it_is(site):
    peer = await site.connect()
    answer = await peer.call("hello", token="agent-token", role="agent")
    assert answer["result"] == {"role": "agent", "agent": "main"}


@pytest.mark.parametrize(
    ("token", "role"),
    [("nope", "agent"), ("nope", "operator"), ("agent-token", "operator"), ("operator-token", "agent")],
)
async def test_a_wrong_token_gets_one_error_and_is_closed(site, token, role):
    peer = await site.connect()
    answer = await peer.call("hello", token=token, role=role)
    assert answer["error"]["code"] == -32001
    assert answer["error"]["data"] == {"field": "token"}
    assert await peer.read() is None


@pytest.mark.parametrize("method", ["exec.run", "exec.approval.resolve", "nope"])
async def test_the_first_call_must_be_hello(site, method):
    peer = await site.connect()
    answer = await peer.call(method, command="exit 0")
    assert "hello" in answer["error"]["message"]
    assert await peer.read() is None
    assert site.desk.calls == []


async def test_a_malformed_hello_names_the_field(site):
    peer = await site.connect()
    answer = await peer.call("hello", token="agent-token", role="root")
    assert answer["error"]["data"] == {"field": "role"}


async def test_an_unreadable_line_before_hello_is_an_error_and_the_connection_lives_on(site):
    peer = await site.connect()
    peer.send(b"what?\n")
    assert (await peer.answer(None))["error"]["code"] == -32700
    assert "result" in await peer.call("hello", token="agent-token")


async def test_hello_is_said_once(site):
    peer = await site.agent()
    assert "already" in (await peer.call("hello", token="agent-token"))["error"]["message"]


@pytest.mark.parametrize("said", [b"", b"what?\n", b'{"jsonrpc"'])
async def test_who_says_no_hello_is_let_go_whatever_else_they_say(short_home, site, said):
    service = Service(site.gatekeeper, site.desk, some_desks(console=site.console), hello_deadline_s=0.05)
    served: list[asyncio.Task[None]] = []

    def connected(reader, writer):
        served.append(
            asyncio.create_task(Connection(service, reader, writer, PeerCredentials(1, 2, 3)).serve())
        )

    async with await asyncio.start_unix_server(connected, short_home / "other.sock"):
        reader, writer = await asyncio.open_unix_connection(short_home / "other.sock")
        writer.write(said)
        async with asyncio.timeout(10):
            *_, told, nothing = (await reader.read()).split(b"\n")
        assert "no hello" in json.loads(told)["error"]["message"]
        assert nothing == b""
        writer.close()
        await asyncio.gather(*served)


async def test_an_agent_may_send_fewer_values_in_a_line_than_the_operator(site):
    many = [1] * (VALUES_LIMIT + 1)
    agent, operator = await site.agent(), await site.operator()
    agent.start("session.describe", many=many)
    refused = await agent.answer(None)  # whose call it is was not read either
    assert "more than 5000 values" in refused["error"]["message"]
    taken = await operator.call("exec.approval.list", many=many)
    assert taken["error"]["data"] == {"field": "many"}  # it was read, and is no parameter


@pytest.mark.parametrize("method", sorted(OPERATOR_METHODS))
async def test_an_agent_can_call_no_operator_method(site, method):
    answer = await (await site.agent()).call(method, id="12345678", decision="allow-once")
    assert answer["error"]["code"] == -32002
    assert "operator only" in answer["error"]["message"]
    assert site.console.seen == []


@pytest.mark.parametrize("method", sorted(AGENT_METHODS))
async def test_the_operator_can_call_no_agent_method(site, method):
    answer = await (await site.operator()).call(method, command="exit 0")
    assert answer["error"]["code"] == -32002
    assert "agents only" in answer["error"]["message"]
    assert site.desk.calls == []


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"",
        b"[]",
        b"3",
        b'{"jsonrpc":"2.0","id":9,"method":"nope"}',
        b'{"jsonrpc":"2.0","id":9,"method":"exec.run","params":{"argv":"ls"}}',
        b'{"jsonrpc":"2.0","method":"exec.run","params":{"command":"exit 0"}}',
        b'{"jsonrpc":"2.0","id":9,"method":"exec.run","params":{"command":"exit 0","command":"exit 1"}}',
        b"[" * 100_000,
        b"x" * (1024 * 1024 + 1),
        b"\xff",
    ],
)
async def test_a_bad_line_is_an_error_object_and_the_connection_lives_on(site, line):
    peer = await site.agent()
    peer.send(line + b"\n")
    told = await peer.read()
    assert "error" in told
    assert site.desk.calls == []
    assert (await peer.call("exec.run", command="exit 3"))["result"]["exitCode"] == 3


async def test_a_line_over_a_mebibyte_is_told_its_limit(site):
    peer = await site.agent()
    peer.send(
        b'{"jsonrpc":"2.0","id":5,"method":"exec.run","params":{"command":"' + b"x" * 3_000_000 + b'"}}\n'
    )
    assert "1048576" in (await peer.answer(None))["error"]["message"]


async def test_a_reason_of_ten_megabytes_is_told_the_limit_and_decides_nothing(site):
    peer = await site.operator()
    head = b'{"jsonrpc":"2.0","id":5,"method":"exec.approval.resolve","params":{"id":"12345678",'
    peer.send(head + b'"decision":"deny","reason":"' + b"x" * 10_000_000 + b'"}}\n')
    assert "1048576" in (await peer.answer(None))["error"]["message"]
    just_fits = await peer.call(
        "exec.approval.resolve", id="12345678", decision="deny", reason="x" * 1_000_000
    )
    assert just_fits["error"]["data"] == {"field": "reason"}
    assert "result" in await peer.call("exec.approval.list")


async def test_a_call_may_arrive_in_pieces(site):
    peer = await site.agent()
    line = b'{"jsonrpc":"2.0","id":5,"method":"exec.run","params":{"command":"exit 4"}}\n'
    for at in range(0, len(line), 20):
        peer.send(line[at : at + 20])
        await peer.writer.drain()
        await asyncio.sleep(0.002)
    assert (await peer.answer(5))["result"]["exitCode"] == 4


async def test_the_kernels_word_on_the_peer_is_passed_on(site):
    await (await site.agent()).call("exec.run", command="exit 0")
    assert site.desk.peers == [PeerCredentials(os.getpid(), os.getuid(), os.getgid())]


async def test_output_comes_as_base64_and_names_its_call(site):
    peer = await site.agent()
    call = peer.start("exec.run", command="say hello")
    running, out, err, answer = [await peer.read() for _ in range(4)]
    assert (running["method"], running["params"]["call"]) == ("exec.running", call)
    assert base64.b64decode(out["params"]["data"]) == b"hello"
    assert (err["params"]["stream"], base64.b64decode(err["params"]["data"])) == ("stderr", b"\xff\x00 raw\n")
    assert answer["result"]["stdout"] == "hello"


async def test_several_calls_are_in_flight_and_answered_as_they_end(site):
    peer = await site.agent()
    slow = peer.start("exec.run", command="wait")
    assert (await peer.call("exec.run", command="exit 7"))["result"]["exitCode"] == 7
    site.desk.answered.set()
    assert (await peer.answer(slow))["result"]["status"] == "finished"


async def test_waiting_calls_end_when_the_connection_closes(site, until):
    peer = await site.agent()
    for name in ("a", "b"):
        peer.start("exec.run", command=f"wait {name}")
    await until(lambda: len(site.desk.calls) == 2)
    await peer.hang_up()
    await until(lambda: sorted(site.desk.hung_up) == ["a", "b"])


async def test_too_many_calls_at_once_are_refused_and_the_others_go_on(site):
    peer = await site.agent()
    calls = [peer.start("exec.run", command="wait") for _ in range(65)]
    answer = await peer.answer(calls[-1])
    assert "in flight" in answer["error"]["message"]
    site.desk.answered.set()
    assert (await peer.answer(calls[0]))["result"]["status"] == "finished"


async def test_a_reader_that_does_not_read_is_disconnected_and_delays_nobody(site, until):
    deaf, other = await site.agent(), await site.agent()
    deaf.writer.transport.pause_reading()
    deaf.start("exec.run", command="flood 1000")
    assert (await other.call("exec.run", command="exit 0"))["result"]["exitCode"] == 0
    await until(lambda: site.desk.flooded)
    deaf.writer.transport.resume_reading()
    got = 0
    while data := await deaf.reader.read(2**20):
        got += len(data)
    assert got < 1000 * 64 * 1024  # it was cut off before the end


async def test_a_revoked_token_ends_an_open_connection_too(site):
    peer = await site.agent()
    assert "result" in await peer.call("exec.run", command="exit 0")
    del site.gatekeeper.agents["agent-token"]
    assert (await peer.call("exec.run", command="exit 0"))["error"]["code"] == -32001
    assert len(site.desk.calls) == 1


async def test_a_revocation_cuts_off_the_agents_connections_with_their_calls_and_nobody_elses(site, until):
    peer, other = await site.agent(), await site.agent("other-token")
    peer.start("exec.run", command="wait main")
    await until(lambda: site.desk.calls)
    site.ingress.cut_off("main")
    while (told := await peer.read()) is not None:
        last = told
    assert last["error"]["code"] == -32001
    assert "revoked" in last["error"]["message"]
    await until(lambda: site.desk.hung_up == ["main"])
    assert "result" in await other.call("exec.run", command="exit 0")


async def test_a_call_tells_the_desk_which_token_it_came_in_with(site):
    peer = await site.agent()
    for method, params in (
        ("exec.run", {"command": "exit 0"}),
        ("tool.check", {"tool": "read"}),
        ("exec.approval.request", {"command": "exit 0", "twoPhase": True}),
    ):
        await peer.call(method, **params)
        assert site.desk.calls[-1].credential == digest("agent-token"), method


async def test_who_falls_behind_in_the_events_is_cut_off_and_not_left_waiting(site):
    peer, other = await site.operator(), await site.operator()
    await peer.call("events.subscribe")
    site.console.events.put_nowait({"method": "exec.running", "params": {}})
    assert (await peer.read())["method"] == "exec.running"
    site.console.events.put_nowait(None)
    assert await peer.read() is None
    assert "result" in await other.call("daemon.status")


async def test_an_agent_cannot_name_another_agents_session(site):
    peer = await site.agent()
    for method, params in (
        ("exec.run", {"command": "exit 0"}),
        ("tool.check", {"tool": "read"}),
        ("exec.approval.request", {"command": "exit 0"}),
        ("session.describe", {}),
    ):
        answer = await peer.call(method, session="agent:other:main", **params)
        assert answer["error"]["data"] == {"field": "session"}, method
    assert site.desk.calls == []


async def test_errors_of_the_core_keep_their_words_and_faults_keep_their_secrets(site):
    peer = await site.agent()
    malformed = (await peer.call("exec.run", command="malformed"))["error"]
    assert (malformed["code"], malformed["data"]) == (-32602, {"field": "cwd"})
    assert "disk is full" in (await peer.call("exec.run", command="full"))["error"]["message"]
    fault = (await peer.call("exec.run", command="fault"))["error"]
    assert fault["code"] == -32603
    assert "secret" not in fault["message"]
    assert (await peer.call("exec.approval.waitDecision", id="99999999"))["error"]["code"] == -32003


async def test_a_detached_call_comes_back_with_the_id_and_its_question_stays(site, request_id):
    answer = await (await site.agent()).call("exec.run", command="wait", detach=True)
    assert (answer["result"]["status"], answer["result"]["id"]) == ("pending", request_id)
    assert answer["result"]["deadline"] == 2**42
    assert site.desk.hung_up == [""]


async def test_a_detached_call_that_needs_nobody_is_answered_in_full(site):
    answer = await (await site.agent()).call("exec.run", command="exit 5", detach=True)
    assert (answer["result"]["status"], answer["result"]["exitCode"]) == ("finished", 5)


async def test_a_two_phase_request_is_accepted_and_waited_for(site, request_id):
    peer = await site.agent()
    accepted = await peer.call("exec.approval.request", tool="write", args={"path": "/x"}, twoPhase=True)
    assert (accepted["result"]["status"], accepted["result"]["id"]) == ("accepted", request_id)
    waiting = peer.start("exec.approval.waitDecision", id=request_id)
    site.desk.answered.set()
    assert (await peer.answer(waiting))["result"]["status"] == "finished"


async def test_a_one_phase_request_waits_for_the_decision(site):
    peer = await site.agent()
    call = peer.start("exec.approval.request", command="rm -rf build")
    assert (await peer.read())["method"] == "exec.approval.requested"
    site.desk.answered.set()
    assert (await peer.answer(call))["result"]["status"] == "finished"


async def test_a_two_phase_request_that_is_decided_comes_decided(site):
    answer = await (await site.agent()).call("exec.approval.request", tool="read", twoPhase=True)
    assert answer["result"]["status"] == "allowed"


async def test_an_approval_is_spent_through_exec_run(site, request_id):
    answer = await (await site.agent()).call("exec.run", command="exit 0", approvalId=request_id)
    assert answer["result"]["id"] == request_id
    ((call, spent),) = site.desk.calls
    assert (call.command.line, spent) == ("exit 0", request_id)


async def test_an_agent_withdraws_and_asks_what_holds_for_it(site):
    peer = await site.agent("other-token")
    withdrawn = await peer.call("exec.approval.withdraw", id="12345678")
    assert withdrawn["result"]["reason"] == "withdrawn by other"
    described = await peer.call("session.describe", claims={"depth": 2})
    assert described["result"] == {"session": "agent:other:main", "depth": 2}


async def test_the_operator_is_recorded_by_uid_and_login_name(site):
    await (await site.operator()).call("exec.approval.resolve", id="12345678", decision="deny", reason="no")
    (review,) = site.console.seen
    request_id, answer, reviewer, reason = (review.request_id, review.answer, review.reviewer, review.reason)
    assert (request_id, answer, reason) == ("12345678", "deny", "no")
    assert reviewer.channel == "cli"
    assert (reviewer.id, reviewer.name) == (str(os.getuid()), pwd.getpwuid(os.getuid()).pw_name)


@pytest.mark.parametrize("method", ["exec.approvals.node.get", "exec.approvals.node.set"])
async def test_documents_of_nodes_are_not_there_as_there_are_no_nodes(site, method):
    answer = await (await site.operator()).call(method, nodeId="build-1")
    assert answer["error"]["code"] == -32004
    assert "there are no nodes" in answer["error"]["message"]


@pytest.mark.parametrize(
    "method",
    [
        "exec.approvals.get",
        "exec.approvals.set",
        "exec.approvals.node.get",
        "allowlist.add",
        "allowlist.list",
    ],
)
async def test_an_agent_neither_reads_nor_changes_the_allowlist(site, method):
    answer = await (await site.agent()).call(method)
    assert answer["error"]["code"] == -32002


async def test_a_document_is_set_only_with_the_hash_of_the_one_that_was_read(site):
    answer = await (await site.operator()).call("exec.approvals.set", document={"version": 1})
    assert answer["error"]["data"]["field"] == "baseHash"


async def test_events_come_to_a_subscriber_until_it_hangs_up(site):
    peer = await site.operator()
    assert (await peer.call("events.subscribe"))["result"] == {"subscribed": True}
    site.console.events.put_nowait({"method": "exec.approval.resolved", "params": {"id": "x"}})
    assert (await peer.read())["method"] == "exec.approval.resolved"
    assert "already" in (await peer.call("events.subscribe"))["error"]["message"]


async def test_no_task_is_left_when_the_ingress_closes(site, until):
    peer = await site.agent()
    peer.start("exec.run", command="wait")
    subscriber = await site.operator()
    await subscriber.call("events.subscribe")
    await until(lambda: site.desk.calls)
    await site.ingress.close()
    left = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("socket")]
    assert left == []
    assert not site.path.exists()
