"""The ToolDesk of the core: what is registered counts at once, what is refused or unrecorded never does."""

from __future__ import annotations

import asyncio

import pytest

from core.config import Config
from core.errors import RequestError, StoreError
from core.model.principal import Reviewer
from core.registrar import Registrar

OPERATOR = Reviewer("terminal", "operator", "operator")
CONFIG = Config.model_validate({"plugins": {"weather": {"tools": ["forecast"]}}})


class Record:
    """An AuditStore that keeps what it is given, unless it is broken."""

    def __init__(self):
        self.kept, self.broken = [], False

    async def append(self, *events):
        await asyncio.sleep(0)
        if self.broken:
            raise StoreError("the disk is full")
        self.kept += events

    async def revise(self, *events):
        await self.append(*events)


class Clock:
    """Always the same moment."""

    def now(self):
        return 1_000


@pytest.fixture
def record():
    return Record()


@pytest.fixture
def desk(record):
    return Registrar(lambda: CONFIG, record, Clock())


async def test_who_registered_what_is_recorded(desk, record):
    await desk.register("mail", ["send_mail"], OPERATOR)
    (event,) = record.kept
    assert (event.kind, event.actor, event.at) == ("tools.registered", "person:terminal:operator", 1_000)
    assert desk.plugins() == {"mail": ("send_mail",)}


async def test_a_value_handed_out_never_changes(desk):
    before = desk.plugins()
    await desk.register("mail", ["send_mail"], OPERATOR)
    assert before == {}
    with pytest.raises(TypeError):
        desk.plugins()["evil"] = ("exec",)


async def test_what_could_not_be_recorded_is_not_registered(desk, record):
    record.broken = True
    with pytest.raises(StoreError):
        await desk.register("mail", ["send_mail"], OPERATOR)
    assert desk.plugins() == {}


async def test_taking_out_holds_even_where_it_could_not_be_recorded(desk, record):
    await desk.register("mail", ["send_mail"], OPERATOR)
    record.broken = True
    with pytest.raises(StoreError):
        await desk.unregister("mail", OPERATOR)
    assert desk.plugins() == {}


async def test_of_two_plugins_that_want_one_name_at_once_one_gets_it(desk):
    asked = (desk.register(plugin, ["send_mail"], OPERATOR) for plugin in ("one", "two"))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, RequestError) for answer in answers) == 1
    assert len(desk.plugins()) == 1


async def test_a_refusal_changes_and_records_nothing(desk, record):
    with pytest.raises(RequestError, match="built-in tool"):
        await desk.register("mail", ["send_mail", "Bash"], OPERATOR)
    with pytest.raises(RequestError, match="no plugin"):
        await desk.unregister("mail", OPERATOR)
    assert (desk.plugins(), record.kept) == ({}, [])


async def test_all_plugins_are_listed_with_where_they_come_from(desk):
    await desk.register("mail", ["send_mail"], OPERATOR)
    assert [(row["plugin"], row["source"]) for row in await desk.registered()] == [
        ("mail", "run time"),
        ("weather", "plugins.weather"),
    ]
