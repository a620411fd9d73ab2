"""The operator hangs up, revokes and reloads while an agent is busy: what was answered holds."""

from __future__ import annotations

import json
import socket
import time

import pytest

from bot.client import Client, ClientError
from tests.e2e.conftest import wait_for

pytestmark = pytest.mark.daemon

CALLS, WORDS = 120, 400
DELAYS = (0.0, 0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.006)


class Caller:
    """A connection on which lines are sent without waiting for their answers."""

    def __init__(self, daemon, token, role="agent"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(str(daemon.home / "sayso.sock"))
        self.answers = self.socket.makefile("rb")
        self.send("hello", token=token, role=role)
        assert "result" in json.loads(self.answers.readline())

    def send(self, method, **params):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.socket.sendall(json.dumps(call).encode() + b"\n")

    def close(self):
        self.answers.close()
        self.socket.close()


@pytest.fixture
def operator(daemon):
    token = (daemon.home / "operator.token").read_text().strip()
    with Client(str(daemon.home / "sayso.sock"), token, "operator") as client:
        client.own_token = token
        yield client


@pytest.fixture
def agent(daemon):
    """Make connections of an agent; all of them are closed at the end."""
    made = []

    def connect(token, role="agent"):
        made.append(Caller(daemon, token, role))
        return made[-1]

    yield connect
    for caller in made:
        caller.close()


def write(daemon, text):
    daemon.config.write_text(f"sandboxing: {{workspaceRoot: {daemon.root}/workspaces, mode: 'off'}}\n{text}")


def put_in_force(daemon, operator, security):
    write(daemon, f"tools: {{exec: {{security: {security}, ask: 'off', host: gateway}}}}\n")
    told = operator.call("config.reload")
    assert told["ok"], told
    return int(time.time() * 1000)


def flood(connect, token):
    """Have many large calls queue up on a few connections."""
    callers = [connect(token) for _ in range(4)]
    words = [f"word{number}" for number in range(WORDS)]
    for number in range(CALLS):
        callers[number % 4].send("exec.run", argv=["/bin/echo", *words, str(number)])


def history(operator, agent):
    return operator.call("request.history", {"agent": agent, "limit": 1000})


def quiet(operator, agent, *, least=0):
    """Wait until nothing of an agent's is decided any more, and so much was."""

    def look():
        before = len(history(operator, agent))
        time.sleep(0.7)
        return len(history(operator, agent)) == before >= least

    wait_for(look, seconds=30)


def alive(daemon, token):
    try:
        with Client(str(daemon.home / "sayso.sock"), token) as client:
            return client.call("session.describe")["agent"] is not None
    except ClientError:
        return False


def test_a_revocation_whose_operator_hangs_up_holds_for_the_old_token_for_good(daemon, operator, agent):
    for number, delay in enumerate(DELAYS):
        name = f"guest{number}"
        old = operator.call("agent.add", {"agent": name})["token"]
        hasty = agent(operator.own_token, "operator")
        hasty.send("agent.revoke", agent=name)
        time.sleep(delay)
        hasty.close()
        time.sleep(0.1)
        rows = {row["id"]: row for row in operator.call("agent.list")}
        assert alive(daemon, old) == (rows[name]["revokedAt"] is None), delay
        operator.call("agent.revoke", {"agent": name})
        new = operator.call("agent.add", {"agent": name})["token"]
        assert not alive(daemon, old), delay
        assert alive(daemon, new), delay


def test_calls_that_queued_under_a_revoked_token_do_not_run_under_the_next_one(daemon, operator, agent):
    put_in_force(daemon, operator, "full")
    old = operator.call("agent.add", {"agent": "busy"})["token"]
    flood(agent, old)
    time.sleep(0.05)
    operator.call("agent.revoke", {"agent": "busy"})
    new = operator.call("agent.add", {"agent": "busy"})["token"]
    minted = int(time.time() * 1000)
    quiet(operator, "busy")
    late = [row for row in history(operator, "busy") if row["createdAt"] > minted]
    assert [row["state"] for row in late if row["state"] != "denied"] == []
    with Client(str(daemon.home / "sayso.sock"), new) as client:
        assert client.call("exec.run", {"argv": ["/bin/echo", "mine"]})["stdout"] == "mine\n"


def test_what_queued_before_a_reload_is_decided_by_what_was_reloaded(daemon, operator, agent):
    put_in_force(daemon, operator, "full")
    token = operator.call("agent.add", {"agent": "busy"})["token"]
    flood(agent, token)
    time.sleep(0.1)
    answered = put_in_force(daemon, operator, "deny")
    quiet(operator, "busy", least=1)
    rows = history(operator, "busy")
    late = [row["id"] for row in rows if row["state"] != "denied" and row["createdAt"] > answered]
    assert late == []
    started = [
        event["at"]
        for event in operator.call("audit.tail", {"limit": 1000})
        if event["kind"] == "run.started" and event["at"] > answered
    ]
    assert started == []
    assert [row["rule"] for row in rows if row["createdAt"] > answered].count("exec.security-deny") > 0


def was_recorded(operator, before):
    """Tell whether a reload came to be recorded; one that began has done so long before we give up."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        events = [row for row in operator.call("audit.tail", {"limit": 20}) if row["seq"] > before]
        if any(event["kind"] == "config.reloaded" for event in events):
            return True
        time.sleep(0.05)
    return False


def test_a_reload_whose_operator_hangs_up_is_in_force_where_it_is_recorded(daemon, operator, agent):
    put_in_force(daemon, operator, "full")
    token = operator.call("agent.add", {"agent": "busy"})["token"]
    recorded = 0
    with Client(str(daemon.home / "sayso.sock"), token) as client:
        for delay in (0.005, 0.01, 0.015, 0.02, 0.03, 0.04):
            put_in_force(daemon, operator, "full")
            write(daemon, "tools: {exec: {security: deny, ask: 'off', host: gateway}}\n")
            before = operator.call("audit.tail", {"limit": 1})[-1]["seq"]
            hasty = agent(operator.own_token, "operator")
            hasty.send("config.reload")
            time.sleep(delay)
            hasty.close()
            reloaded = was_recorded(operator, before)
            ran = client.call("exec.run", {"argv": ["/bin/echo", "x"]})["status"] == "finished"
            assert reloaded != ran, delay
            recorded += reloaded
    assert recorded > 0
