"""Registering tools over a real socket, with the real desk and record behind (`ToolDesk`)."""

from __future__ import annotations

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from adapters.stores.sqlite import open_store
from core.config import Config
from core.model.decision import Effect
from core.policy import ToolIdentity, decide, resolve
from core.registrar import Registrar
from tests.desks import some_desks

CONFIG = Config.model_validate({"plugins": {"weather": {"tools": ["forecast"]}}})


class Shop:
    """The desk behind the socket, and what an agent may use by it."""

    def __init__(self, site, desk, store):
        self.site, self.desk, self.store = site, desk, store

    def effect(self, tool):
        return decide(resolve(CONFIG, ToolIdentity("main", plugins=self.desk.plugins())), tool).effect

    async def recorded(self):
        events = [chained.event async for chained in self.store.events()]
        return [(event.kind, event.data) for event in events if event.kind.startswith("tools.")]


@pytest.fixture
async def shop(site, clock):
    async with open_store(site.home / "sayso.db") as store:
        desk = Registrar(lambda: CONFIG, store, clock)
        await site.ingress.close()
        desks = some_desks(console=site.console, tools=desk)
        site.ingress = UnixSocketIngress(site.path, site.gatekeeper, site.desk, desks)
        await site.ingress.open()
        yield Shop(site, desk, store)
        for peer in site.peers:
            peer.writer.transport.abort()
        await site.ingress.close()


async def test_a_registered_tool_exists_from_then_on_and_no_longer(shop):
    operator = await shop.site.operator()
    assert shop.effect("send_mail") is Effect.DENY
    made = (await operator.call("tools.register", plugin="mail", tools=["Send_Mail"]))["result"]
    assert made == {"plugin": "mail", "tools": ["send_mail"], "until": "the daemon ends"}
    assert shop.effect("send_mail") is Effect.ALLOW
    listed = (await operator.call("tools.registered"))["result"]
    assert listed == [
        {"plugin": "mail", "tools": ["send_mail"], "source": "run time"},
        {"plugin": "weather", "tools": ["forecast"], "source": "plugins.weather"},
    ]
    await operator.call("tools.unregister", plugin="mail")
    assert shop.effect("send_mail") is Effect.DENY
    assert await shop.recorded() == [
        ("tools.registered", {"plugin": "mail", "tools": ["Send_Mail"]}),
        ("tools.unregistered", {"plugin": "mail"}),
    ]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"plugin": "mail", "tools": ["fine", "Bash"]}, "built-in tool (exec)"),
        ({"plugin": "weather", "tools": ["x"]}, "written in the configuration"),
        ({"plugin": "mail", "tools": ["forecast"]}, "registered already"),
        ({"plugin": "mail", "tools": []}, "tools"),
        ({"plugin": "mail"}, "tools"),
        ({"plugin": "mail", "tools": "x"}, "tools"),
        ({"plugin": "", "tools": ["x"]}, "plugin"),
        ({"plugin": "mail", "tools": ["x"], "owner": True}, "owner"),
    ],
)
async def test_what_is_refused_names_the_field_and_changes_nothing(shop, params, words):
    operator = await shop.site.operator()
    answer = await operator.call("tools.register", **params)
    assert words in answer["error"]["message"]
    assert shop.desk.plugins() == {}
    assert await shop.recorded() == []


async def test_a_plugin_of_the_configuration_cannot_be_taken_out(shop):
    operator = await shop.site.operator()
    answer = await operator.call("tools.unregister", plugin="weather")
    assert "no plugin 'weather' was registered at run time" in answer["error"]["message"]
    assert shop.effect("forecast") is Effect.ALLOW


@pytest.mark.parametrize("method", ["tools.register", "tools.unregister", "tools.registered"])
async def test_an_agent_can_call_none_of_them(shop, method):
    agent = await shop.site.agent()
    answer = await agent.call(method, plugin="mail", tools=["send_mail"])
    assert answer["error"]["code"] == -32002
    assert shop.desk.plugins() == {}
