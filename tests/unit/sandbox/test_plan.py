from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import ExecSettings, SandboxOverrides, SandboxSettings
from core.errors import ConfigError
from core.model.command import Placement
from core.model.plan import BoundCommand, SandboxPlan
from core.sandbox.plan import digest, environment, host_plan, plan_for, visible

WORKSPACE = "/srv/work"


def plan(
    sandbox: dict[str, Any] | None = None,
    overrides: dict[str, Any] | None = None,
    exec_settings: dict[str, Any] | None = None,
    **given_facts: Any,
) -> SandboxPlan:
    facts: dict[str, Any] = {
        "state_dir": "/home/op/.sayso",
        "protected": ("/etc/sayso/config.yaml",),
        "hidden": ("/home/op",),
        "workspace": WORKSPACE,
        "account": "nobody",
        "timeout_s": None,
    }
    return plan_for(
        SandboxSettings.model_validate(sandbox or {}),
        SandboxOverrides.model_validate(overrides or {}),
        ExecSettings.model_validate(exec_settings or {}),
        **{**facts, **given_facts},
    )


def test_only_the_workspace_can_be_written() -> None:
    made = plan()
    assert made.writable == (WORKSPACE,)
    assert made.network is False
    assert made.user == "nobody"


def test_state_configuration_homes_and_other_workspaces_are_masked() -> None:
    masked = plan({"masked": ["/data/private"]}, hidden=("/home/op", "/var/ws")).masked
    for path in (
        "/home/op/.sayso",
        "/etc/sayso/config.yaml",
        "/home/op",
        "/root",
        "/home",
        "/data/private",
        "/var/ws",
        "/var/lib/sayso",
    ):
        assert path in masked


def test_a_read_only_workspace_is_readable_and_not_writable() -> None:
    made = plan({"workspaceAccess": "ro"})
    assert made.writable == ()
    assert WORKSPACE in made.readable


def test_an_agent_may_set_workspace_access_for_itself() -> None:
    assert plan({"workspaceAccess": "ro"}, {"workspaceAccess": "rw"}).writable == (WORKSPACE,)
    assert plan({"workspaceAccess": "rw"}, {"workspaceAccess": "ro"}).writable == ()


@pytest.mark.parametrize(
    "path", ["/home/op/.sayso", "/home/op/.sayso/output", "/etc/sayso/config.yaml", "/home/op/x/../.sayso/"]
)
def test_sayso_s_own_state_cannot_be_made_readable(path: str) -> None:
    with pytest.raises(ConfigError, match=r"sandboxing\.readable: .* never"):
        plan({"readable": [path]})


@pytest.mark.parametrize("path", ["/home/op/.sayso-notes", "/home/op/tools", "/etc/sayso"])
def test_what_only_looks_like_the_state_can_be_made_readable(path: str) -> None:
    assert visible(plan({"readable": [path]}), path)


def test_the_state_stays_masked_inside_a_readable_home_and_inside_a_workspace_above_it() -> None:
    for made in (plan({"readable": ["/home/op"]}), plan(workspace="/home/op")):
        assert visible(made, "/home/op/notes")
        assert not visible(made, "/home/op/.sayso")
        assert not visible(made, "/home/op/.sayso/output")


def test_a_state_directory_as_workspace_stays_masked() -> None:
    assert not visible(plan(workspace="/home/op/.sayso"), "/home/op/.sayso")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", True),  # with what is shown in it
        ("/usr/bin", True),
        ("/opt/tools/bin", True),
        ("/nix/store/x", True),
        ("/nix/var/nix/daemon-socket/socket", False),
        ("/srv", False),
        ("/srv/other", False),
        ("/var/lib/x", False),
        ("/var/lib/dpkg/status", True),
        ("/mnt/disk", False),
        ("/srv/work", True),
        ("/srv/work/a/b", True),
        ("/home/op", False),
        ("/home/op/project", False),
        ("/home/other", False),
        ("/homestead", False),
        ("/tmp", False),
        ("/tmp/x", False),
        ("/run/user/1000", False),
        ("/proc/1", False),
        ("/usr/../home/op", False),
        ("relative", False),
        ("", False),
    ],
)
def test_visible_is_what_the_sandbox_shows_of_the_host(path: str, shown: bool) -> None:  # noqa: FBT001 - a table
    assert visible(plan(), path) is shown


def test_a_workspace_below_a_masked_directory_or_below_tmp_is_visible() -> None:
    assert visible(plan(workspace="/home/op/project"), "/home/op/project/src")
    assert not visible(plan(workspace="/home/op/project"), "/home/op/project2")
    assert visible(plan(workspace="/tmp/w"), "/tmp/w")
    assert not visible(plan(workspace="/tmp/w"), "/tmp")


def test_the_timeout_is_the_smaller_of_wish_and_setting() -> None:
    assert plan(exec_settings={"timeoutSeconds": 60}).limits.timeout_s == 60
    assert plan(exec_settings={"timeoutSeconds": 60}, timeout_s=5).limits.timeout_s == 5
    assert plan(exec_settings={"timeoutSeconds": 60}, timeout_s=600).limits.timeout_s == 60


def test_readable_shows_again_all_but_what_is_masked() -> None:
    made = plan({"readable": ["/", "/srv/shared"]}, hidden=("/home/op", "/srv/shared", "/srv/other"))
    for path in ("/srv/data", "/var/lib/x", "/srv/shared/x"):
        assert visible(made, path)
        assert visible(plan(), path) is False
    for path in ("/srv/other/x", "/home/op/x", "/tmp/x", "/home/op/.sayso", "/etc/sayso/config.yaml"):
        assert not visible(made, path)


def test_path_prepend_comes_first() -> None:
    path = dict(plan(exec_settings={"pathPrepend": ["/opt/tools"]}).env)["PATH"]
    assert path.split(":")[:2] == ["/opt/tools", "/usr/local/sbin"]


def on_the_host(unheld: str | None, **settings: Any) -> SandboxPlan:
    return host_plan(
        ExecSettings.model_validate(settings),
        own=("/home/op/.sayso", "/etc/sayso/../sayso/config.yaml"),
        program=("/opt/sayso",),
        workspace=WORKSPACE,
        account="agent",
        unheld=unheld,
        timeout_s=None,
    )


def test_on_the_host_all_is_there_but_what_is_sayso_s_own() -> None:
    made = on_the_host(None, hostSockets=["/run/docker.sock"])
    assert made.masked == ("/etc/sayso/config.yaml", "/home/op/.sayso")
    assert (made.read_only, made.sockets) == (("/opt/sayso",), ("/run/docker.sock",))
    assert (made.user, made.network, made.backend, made.unheld) == ("agent", True, "host", None)


def test_a_run_that_nothing_holds_says_so_in_its_plan_and_promises_nothing() -> None:
    made = on_the_host("it runs as root", hostSockets=["/run/docker.sock"])
    assert (made.masked, made.read_only, made.sockets) == ((), (), ())
    assert made.unheld == "it runs as root"
    assert digest(made) != digest(on_the_host("another reason"))


def test_the_session_cannot_be_chosen_by_the_agent() -> None:
    bound = BoundCommand(
        "main",
        "agent:main:main",
        "env",
        WORKSPACE,
        (("SAYSO_SESSION", "agent:other:main"), ("LANG", "de_DE.UTF-8")),
        None,
        Placement.SANDBOX,
        plan(),
        (),
    )
    got = environment(bound, "nobody")
    assert got["SAYSO_SESSION"] == "agent:main:main"
    assert got["LANG"] == "de_DE.UTF-8"
    assert got["HOME"] == WORKSPACE


def test_equal_plans_have_equal_digests_and_each_field_counts() -> None:
    made = plan()
    assert digest(made) == digest(plan())
    changes: dict[str, Any] = {
        "backend": "other",
        "workspace": "/x",
        "writable": (),
        "readable": ("/x",),
        "masked": (),
        "network": True,
        "env": (),
        "limits": replace(made.limits, timeout_s=1),
        "user": None,
        "read_only": ("/x",),
        "sockets": ("/x",),
        "unheld": "x",
    }
    digests = {digest(replace(made, **{name: value})) for name, value in changes.items()}
    assert len(digests | {digest(made)}) == len(changes) + 1


segments = st.lists(st.sampled_from(["home", "op", ".sayso", "a", "b", "srv", "work"]), max_size=5)


@given(segments)
def test_nothing_at_or_below_the_state_directory_is_ever_visible(below: list[str]) -> None:
    path = "/".join(["/home/op/.sayso", *below])
    for made in (plan(), plan({"readable": ["/home/op"]}), plan(workspace="/home/op")):
        assert not visible(made, path)
