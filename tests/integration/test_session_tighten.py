"""`sayso session tighten` over a real socket, with the real desk and store behind."""

from __future__ import annotations

import json

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from adapters.stores.sqlite import open_store
from core.credentials import Credentials
from core.session_modes import SessionModesConsole
from tests.desks import some_desks

MAIN = "agent:main:main"


@pytest.fixture
async def tightening(site, clock):
    async with open_store(site.home / "sayso.db") as store:
        await Credentials(store, clock, None).mint("main", "test")
        await site.ingress.close()
        desks = some_desks(console=site.console, session_modes=SessionModesConsole(store, clock))
        site.ingress = UnixSocketIngress(site.path, site.gatekeeper, site.desk, desks)
        await site.ingress.open()
        yield site
        for peer in site.peers:
            peer.writer.transport.abort()
        await site.ingress.close()


async def sayso(site, *arguments):
    status, out, err = await site.sayso(*arguments)
    return status, out.decode(), err if isinstance(err, str) else err.decode()


async def test_set_list_and_clear(tightening):
    status, out, err = await sayso(tightening, "session", "tighten", MAIN, "--security", "deny")
    assert (status, err) == (0, "")
    assert out == f"From now on security is deny for {MAIN} and its subagents, at the least.\n"
    status, out, _ = await sayso(tightening, "session", "tighten", MAIN, "--ask", "always", "--json")
    told = json.loads(out)
    assert (status, told["session"], told["security"], told["ask"]) == (0, MAIN, "deny", "always")
    _, out, _ = await sayso(tightening, "session", "tighten")
    assert out.splitlines()[1].split() == [MAIN, "deny", "always"]
    _, out, _ = await sayso(tightening, "session", "tighten", "--json")
    assert [row["session"] for row in json.loads(out)] == [MAIN]
    status, out, _ = await sayso(tightening, "session", "tighten", MAIN, "--clear")
    assert (status, out) == (0, f"Cleared: what is configured holds for {MAIN} again.\n")
    _, out, _ = await sayso(tightening, "session", "tighten")
    assert out == "nothing is set: what is configured holds for every session\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("loosen",), "session: give one of bind, end, tighten, not 'loosen'"),
        (("tighten", MAIN), "give --security, --ask or both, or --clear"),
        (("tighten", MAIN, "--ask", "always", "--clear"), "give --security, --ask or both, or --clear"),
        (("tighten", "--ask", "always"), "say which session, as agent:main:main"),
        (("tighten", MAIN, "--security", "full"), "invalid choice: 'full'"),
        (("tighten", MAIN, "--ask", "off"), "invalid choice: 'off'"),
    ],
)
async def test_slips_are_told_in_a_line(tightening, arguments, words):
    status, out, err = await sayso(tightening, "session", *arguments)
    assert (status, out) == (64, "")
    assert words in err
    assert len(err.splitlines()) == 1


async def test_the_help_tells_the_modes(tightening):
    status, out, _ = await sayso(tightening, "session", "tighten", "--help")
    assert status == 0
    assert "{deny,allowlist}" in out
    assert "{always,on-miss}" in out


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("session.tighten", {"session": MAIN, "security": "full"}, "security"),
        ("session.tighten", {"session": MAIN, "ask": "off"}, "ask"),
        ("session.tighten", {"session": "main", "ask": "always"}, "session"),
        ("session.tighten", {"security": "deny"}, "session"),
        ("session.tighten", {"session": MAIN}, "security"),
        ("session.tighten", {"session": MAIN, "askFallback": "deny"}, "askFallback"),
        ("session.clear", {"session": MAIN}, "session"),
    ],
)
async def test_what_is_refused_names_the_field_and_changes_nothing(tightening, method, params, field):
    operator = await tightening.operator()
    assert (await operator.call(method, **params))["error"]["data"]["field"] == field
    assert (await operator.call("session.tightened"))["result"] == []


@pytest.mark.parametrize("method", ["session.tighten", "session.clear", "session.tightened"])
async def test_an_agent_can_call_none_of_them(tightening, method):
    agent = await tightening.agent()
    assert (await agent.call(method, session=MAIN))["error"]["code"] == -32002
