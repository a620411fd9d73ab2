"""The doctor tells where commands really run, not only whether a sandbox is there."""

from __future__ import annotations

from typing import Any

import pytest

from bot.check import Check, Status
from bot.doctor_placement import sandbox_use
from core.config import Config


def told(**data: Any) -> list[Check]:
    return sandbox_use(Config.model_validate(data))


def test_the_default_is_the_sandbox_for_every_session() -> None:
    (check,) = told()
    assert (check.name, check.status) == ("sandbox use", Status.OK)
    assert check.detail == "every session runs in the sandbox"


def test_exec_on_this_host_is_not_called_the_sandbox() -> None:
    (check,) = told(tools={"exec": {"host": "gateway"}})
    assert check.status is Status.WARN
    assert check.detail == "on the host run every session (tools.exec.host is gateway)"
    assert check.mend == "set tools.exec.host: sandbox"


@pytest.mark.parametrize(("mode", "who"), [("off", "every session"), ("non-main", "main sessions")])
def test_a_mode_that_leaves_sessions_out_is_named(mode: str, who: str) -> None:
    (check,) = told(sandboxing={"mode": mode})
    assert check.detail == f"on the host run {who} (sandboxing.mode is {mode})"
    assert check.mend == "set sandboxing.mode: all"


@pytest.mark.parametrize(
    ("section", "source", "mend"),
    [
        ({"exec": {"host": "gateway"}}, "agents.ops.exec.host", "sandbox"),
        ({"sandbox": {"mode": "off"}}, "agents.ops.sandbox.mode", "all"),
        ({"sandbox": {"enabled": False}}, "agents.ops.sandbox.enabled", "true"),
    ],
)
def test_an_agent_that_is_placed_on_the_host_by_its_own_section_is_named(
    section: dict[str, Any], source: str, mend: str
) -> None:
    (check,) = told(agents={"byId": {"ops": section}})
    assert check.status is Status.WARN
    assert check.detail.startswith(f"on the host run every session of ops ({source} is ")
    assert check.mend == f"set {source}: {mend}"


def test_those_that_are_confined_all_the_same_are_left_out() -> None:
    gateway = {"exec": {"host": "gateway"}}
    (check,) = told(tools=gateway, agents={"byId": {"ops": {"exec": {"host": "sandbox"}}}})
    assert check.detail == "on the host run every session, but of ops (tools.exec.host is gateway)"
    (check,) = told(agents={"byId": {"ops": {**gateway, "pin": {"sandboxed": True}}}})
    assert check.status is Status.OK


def test_each_setting_is_told_by_itself() -> None:
    checks = told(
        tools={"exec": {"host": "gateway"}}, agents={"byId": {"ops": {"exec": {"host": "gateway"}}}}
    )
    assert [check.mend for check in checks] == [
        "set tools.exec.host: sandbox",
        "set agents.ops.exec.host: sandbox",
    ]
