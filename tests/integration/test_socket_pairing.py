"""The methods of pairing over a real socket, with the real desk behind, and the commands that use them."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from adapters.stores.sqlite import open_store
from core.approvals.pairing import Pairing
from core.config import ExecApprovals
from core.model.chat import Typed
from core.model.principal import Sender
from tests.desks import some_desks

HOSTILE = Sender("telegram", "111", "Ann\u202e\x1b[2J", "ann")


class Door:
    """The desk behind the socket, and somebody who sends codes to it."""

    def __init__(self, site, desk):
        self.site, self.desk = site, desk

    async def claim(self, code, who=HOSTILE):
        return await self.desk.claim(Typed(who, who.id, f"/pair {code}", direct=True), code)

    async def let_in(self):
        operator = await self.site.operator()
        made = (await operator.call("pairing.invite", channel="telegram"))["result"]
        await self.claim(made["code"])
        answer = await operator.call("pairing.confirm", id=made["id"], accepted=True)
        assert answer["result"]["accepted"], answer
        return operator


@pytest.fixture
async def door(site, clock):
    async with open_store(site.home / "sayso.db") as store:
        settings = ExecApprovals.model_validate(
            {"mode": "both", "targets": [{"channel": "telegram", "to": "channel:-100"}]}
        )
        desk = Pairing(
            store, clock, lambda: settings, lambda _channel, to: to.split(":")[-1], ["telegram", "web"]
        )
        await site.ingress.close()
        desks = some_desks(console=site.console, pairing=desk)
        site.ingress = UnixSocketIngress(site.path, site.gatekeeper, site.desk, desks)
        await site.ingress.open()
        yield Door(site, desk)
        for peer in site.peers:
            peer.writer.transport.abort()
        await site.ingress.close()
        await desk.close()


async def test_from_an_invitation_to_a_person_and_back(door):
    operator = await door.site.operator()
    made = (await operator.call("pairing.invite", channel="telegram", route="channel:-100"))["result"]
    assert set(made) == {"id", "code", "expiresAt"}
    shown = (await operator.call("pairing.show", id=made["id"]))["result"]
    assert shown == {"id": made["id"], "state": "open", "expiresAt": made["expiresAt"], "person": None}
    await door.claim(made["code"])
    shown = (await operator.call("pairing.show", id=made["id"]))["result"]
    assert (shown["state"], shown["person"]["id"]) == ("claimed", "111")
    await operator.call("pairing.confirm", id=made["id"], accepted=True)
    (person,) = (await operator.call("pairing.people"))["result"]
    assert (person["id"], person["route"]) == ("111", "-100")
    assert "error" in await operator.call("pairing.unpair", channel="telegram", id="111")
    gone = await operator.call("pairing.unpair", channel="telegram", id="111", route="channel:-100")
    assert "may not decide" in gone["result"]["text"]
    assert (await operator.call("pairing.people"))["result"] == []


@pytest.mark.parametrize("method", ["invite", "show", "confirm", "people", "unpair"])
async def test_an_agent_can_call_none_of_them(door, method):
    agent = await door.site.agent()
    answer = await agent.call(f"pairing.{method}", channel="telegram")
    assert answer["error"]["code"] == -32002
    assert door.desk.paired == ()


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("invite", {}, "channel"),
        ("invite", {"channel": ""}, "channel"),
        ("invite", {"channel": "x" * 101}, "channel"),
        ("invite", {"channel": "slack"}, "channel"),
        ("invite", {"channel": "telegram", "route": ""}, "route"),
        ("invite", {"channel": "telegram", "route": "channel:-5"}, "route"),
        ("invite", {"channel": "telegram", "code": "0" * 16}, "code"),
        ("show", {"id": "nope"}, "id"),
        ("confirm", {"id": "nope", "accepted": True}, "id"),
        ("confirm", {"id": "nope"}, "accepted"),
        ("confirm", {"id": "nope", "accepted": 1}, "accepted"),
        ("people", {"channel": "telegram"}, "channel"),
        ("unpair", {"channel": "telegram"}, "id"),
        ("unpair", {"channel": "telegram", "id": "111"}, "id"),
    ],
)
async def test_a_slip_names_the_field_and_changes_nothing(door, method, params, field):
    operator = await door.site.operator()
    error = (await operator.call(f"pairing.{method}", **params))["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, field)
    assert door.desk.paired == ()


async def test_people_are_listed_for_people_and_as_json(door):
    status, out, err = await door.site.sayso("people", "list")
    assert (status, out) == (0, b"")
    assert "sayso pair CHANNEL" in err
    await door.let_in()
    status, out, _ = await door.site.sayso("people", "list")
    assert status == 0
    assert "direct messages" in out.decode()
    assert not {"\u202e", "\x1b"} & set(out.decode())
    status, out, _ = await door.site.sayso("people", "list", "--json")
    assert [person["id"] for person in json.loads(out)] == ["111"]


async def test_removing_a_person_ends_their_right(door):
    await door.let_in()
    for wrong in (("telegram", "112"), ("telegram", "111", "--route", "-100"), ("discord", "111")):
        status, out, err = await door.site.sayso("people", "remove", *wrong)
        assert (status, out) == (64, b"")
        assert "sayso people list" in err
    assert len(door.desk.paired) == 1
    status, out, _ = await door.site.sayso("people", "remove", "--json", "telegram", "111")
    assert (status, list(json.loads(out))) == (0, ["text"])
    assert door.desk.paired == ()


async def test_without_a_terminal_no_code_is_made(door):
    status, out, err = await door.site.sayso("pair", "telegram", stdin=b"y\n")
    assert (status, out) == (64, b"")
    assert "run it in a terminal" in err
    assert await asyncio.to_thread(lambda: door.desk._invitations._kept) == {}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("pair",), "CHANNEL"),
        (("people", "remove", "telegram"), "ID"),
        (("pair", "telegram", "--yes"), "--yes"),
    ],
)
async def test_a_slip_on_the_command_line_is_one_line(door, args, told):
    status, out, err = await door.site.sayso(*args)
    assert (status, out, err.count("\n")) == (64, b"", 1)
    assert told in err
