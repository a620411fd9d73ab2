"""Elevated mode with the daemon as a process: kept over kill -9, ended by lock, told when chats return."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import pytest

from tests.platforms.telegram import faults

pytestmark = pytest.mark.daemon

ELEVATED = "tools: {elevated: {enabled: true, allowFrom: ['web:operator']}}\n"
MAIN = "agent:main:main"
FULL = ("full", "--for", "15m", "--reason", "the disk is full")


def level(daemon, session=MAIN):
    rows = {row["session"]: row for row in daemon.json("sessions")}
    return rows[session]["elevated"] if session in rows else None


def open_place(daemon):
    """Give a directory that the account of host runs can write to."""
    place = daemon.root / "open"
    place.mkdir(exist_ok=True)
    daemon.root.chmod(0o711)
    place.chmod(0o777)
    return str(place)


def test_a_level_is_kept_over_kill_9_and_its_runs_are_on_the_host(make_daemon):
    daemon = make_daemon(ELEVATED).start()
    daemon.sayso("elevated", MAIN, *FULL)
    assert daemon.json("exec", "--cwd", open_place(daemon), "--", "touch", "first")["placement"] == "host"
    daemon.kill()
    daemon.start()
    assert level(daemon) == "full"
    outcome = daemon.json("exec", "--cwd", open_place(daemon), "--", "touch", "second")
    assert (outcome["status"], outcome["placement"]) == ("finished", "host")
    record = daemon.sayso("audit", "tail", "--json").stdout
    ran = [row for row in map(json.loads, record.splitlines()) if row["kind"] == "elevated.ran"]
    assert len(ran) == 2
    daemon.sayso("session", "end", MAIN)
    daemon.kill()
    daemon.start()
    assert level(daemon) == "off"


def test_no_level_opens_sayso_to_the_agent(make_daemon):
    daemon = make_daemon(ELEVATED).start()
    daemon.sayso("elevated", MAIN, *FULL)
    for line in (f"cat {daemon.home}/operator.token", "sayso elevated agent:main:main full", "echo $(id)"):
        assert daemon.sayso("exec", "-c", line, status=77).stdout == ""
    assert daemon.sayso("exec", "-c", "touch x > y", status=77)


def test_a_lock_ends_the_level_and_unlocking_brings_it_not_back(make_daemon):
    daemon = make_daemon(ELEVATED).start()
    daemon.sayso("elevated", MAIN, *FULL)
    daemon.sayso("lock")
    daemon.sayso("exec", "--", "touch", "x", status=77)
    refused = daemon.sayso("elevated", MAIN, *FULL, status=None)
    assert refused.returncode != 0
    assert "locked" in refused.stderr
    daemon.sayso("unlock")
    assert level(daemon) == "off"


def test_what_an_agent_asks_for_waits_for_somebody_in_allow_from(make_daemon, finish):
    daemon = make_daemon(ELEVATED).start()
    asking = daemon.ask("--json", "--elevated", "on", "--", "git", "--version")
    (request,) = daemon.pending()
    assert request["placement"] == "host"
    refused = daemon.sayso("approve", request["id"], status=None)
    assert refused.returncode != 0
    assert "tools.elevated.allowFrom" in refused.stdout
    daemon.sayso("deny", request["id"])
    assert finish(asking)[0] == 77


def test_an_agents_token_changes_no_level(make_daemon):
    daemon = make_daemon(ELEVATED).start()
    token = (daemon.home / "agents" / "main.token").read_text().strip()
    calls = [
        ("session.elevated.set", {"session": MAIN, "level": "full", "forMs": 60_000, "reason": "me"}),
        ("session.bind", {"session": MAIN, "channel": "telegram", "to": "1"}),
        ("session.end", {"session": MAIN}),
        ("session.list", {}),
        ("exec.run", {"argv": ["touch", "x"], "directive": "e1"}),
        ("exec.run", {"argv": ["touch", "x"], "placement": "host"}),
    ]
    with socket.socket(socket.AF_UNIX) as line, contextlib.closing(line.makefile("rw")) as file:
        line.connect(str(daemon.home / "sayso.sock"))
        for number, (method, params) in enumerate([("hello", {"token": token, "role": "agent"}), *calls]):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            file.write(json.dumps(request) + "\n")
            file.flush()
            answer = json.loads(file.readline())
            assert ("error" in answer) is (number > 0), answer
    assert level(daemon) in (None, "off")


async def test_break_glass_is_announced_in_a_chat_as_soon_as_that_is_back(telegram_api, make_daemon):
    ann = telegram_api.new_user("Ann")
    chat = telegram_api.private_chat(ann)
    daemon = make_daemon(
        f"{ELEVATED}"
        f"channels: {{telegram: {{token: '{telegram_api.token}', apiUrl: 'http://127.0.0.1:{telegram_api.port}'}}}}\n"
        f"approvals: {{exec: {{mode: targets, approvers: ['telegram:{ann.id}'], "
        f"targets: [{{channel: telegram, to: 'user:{ann.id}'}}]}}, notices: {{elevated: false}}}}\n"
    )
    await asyncio.to_thread(daemon.start)
    telegram_api.misbehave("sendMessage", faults.server_error(), times=2)
    await asyncio.to_thread(daemon.sayso, "elevated", MAIN, *FULL)
    told = await telegram_api.message_when(
        lambda message: "Break-glass: elevated full" in message.text, chat=chat, seconds=20
    )
    assert "the disk is full" in told.text


def test_a_run_on_the_host_leaves_the_workspace_to_those_in_the_sandbox(make_daemon):
    daemon = make_daemon(ELEVATED).start()
    daemon.sayso("elevated", MAIN, *FULL)
    assert daemon.json("exec", "--cwd", open_place(daemon), "--", "touch", "first")["placement"] == "host"
    daemon.sayso("session", "end", MAIN)
    outcome = daemon.json("exec", "--", "git", "--version")
    assert (outcome["status"], outcome["placement"]) == ("finished", "sandbox"), outcome
