"""The agents' own socket: nobody decides anything there, and what is bounded is so together."""

from __future__ import annotations

import pytest

from adapters.ingress.operator_methods import OPERATOR_METHODS


class Beside:
    """The agents' socket beside that of a site."""

    def __init__(self, site, ingress) -> None:
        self.ingress = ingress
        self.site = site

    async def connect(self):
        before, self.site.home = self.site.home, self.ingress.path.parent
        try:
            return await self.site.connect()
        finally:
            self.site.home = before


@pytest.fixture
async def beside(site):
    folder = site.home / "agents"
    folder.mkdir(mode=0o700)
    ingress = site.ingress.for_agents(folder / "sayso.sock")
    await ingress.open()
    yield Beside(site, ingress)
    await ingress.close()


async def test_an_agent_asks_there_as_on_the_operator_s(beside):
    peer = await beside.connect()
    assert (await peer.call("hello", token="agent-token"))["result"] == {"role": "agent", "agent": "main"}
    assert (await peer.call("exec.run", command="exit 3"))["result"]["exitCode"] == 3


async def test_the_operator_is_refused_whatever_the_token_and_it_is_not_looked_at(beside, site, monkeypatch):
    looked: list[str] = []
    monkeypatch.setattr(site.gatekeeper, "operator", looked.append)
    answers = []
    for token in ("operator-token", "agent-token", "nope"):
        peer = await beside.connect()
        answers.append((await peer.call("hello", token=token, role="operator"))["error"])
        assert await peer.read() is None
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0]["code"], answers[0]["data"]) == (-32002, {"field": "role"})
    assert "takes agents alone" in answers[0]["message"]
    assert looked == []


async def test_the_control_the_same_token_counts_on_the_operator_s(site):
    peer = await site.connect()
    assert (await peer.call("hello", token="operator-token", role="operator"))["result"]["role"] == "operator"


async def test_the_operator_s_token_is_no_agent_s(beside):
    peer = await beside.connect()
    assert (await peer.call("hello", token="operator-token", role="agent"))["error"]["code"] == -32001


@pytest.mark.parametrize("method", sorted(OPERATOR_METHODS))
async def test_an_agent_reaches_no_method_of_the_operator_there(beside, site, method):
    peer = await beside.connect()
    await peer.call("hello", token="agent-token")
    assert (await peer.call(method))["error"]["code"] == -32002
    assert site.console.seen == []


async def test_a_revocation_ends_the_connections_there(beside):
    peer = await beside.connect()
    await peer.call("hello", token="agent-token")
    beside.ingress.cut_off("main")
    assert "revoked" in (await peer.read())["error"]["message"]
    assert await peer.read() is None


def test_one_large_line_is_read_at_a_time_on_both_together(beside, site):
    assert beside.ingress._service.reading is site.ingress._service.reading
