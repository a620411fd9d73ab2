from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.runners.bubblewrap import arguments
from adapters.runners.mounts import Effect, Kind, Mount, Seen, mounts_for
from core.errors import RunError
from core.model.plan import Limits, SandboxPlan
from core.sandbox.plan import PRIVATE, SYSTEM

HIDE, FILE, SHOW, OPEN, OWN = (
    Effect.HIDE_DIRECTORY,
    Effect.HIDE_FILE,
    Effect.SHOW,
    Effect.OPEN,
    Effect.OWN,
)


def plan(
    *, writable: str = "/srv/w", readable: tuple[str, ...] = (), masked: tuple[str, ...] = ()
) -> SandboxPlan:
    return SandboxPlan(
        "bubblewrap", writable, (writable,), readable, masked, network=False, env=(), limits=Limits()
    )


def directories(path: str) -> Seen:
    return Seen(Kind.DIRECTORY, path)


def got(made: SandboxPlan, look: Callable[[str], Seen] = directories) -> list[tuple[Effect, str]]:
    """Give the mounts of a machine without system directories, but for those that every sandbox has."""

    def without_system(path: str) -> Seen:
        return Seen(Kind.MISSING, path) if path in SYSTEM else look(path)

    mounts = mounts_for(made, without_system)
    return [(mount.effect, mount.path) for mount in mounts if mount.effect is not OWN]


def test_nothing_is_there_but_the_system_s_directories_and_the_sandbox_s_own_places() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.DIRECTORY, "/usr/bin" if path == "/bin" else path)

    made = [(mount.effect, mount.path) for mount in mounts_for(plan(masked=("/srv", "/data")), look)]
    shown = [(SHOW, path) for path in SYSTEM if path != "/bin"]
    assert sorted(made) == sorted([*shown, *((OWN, path) for path in PRIVATE), (OPEN, "/srv/w")])


def test_a_shown_directory_does_not_lay_open_the_sandbox_s_own_places_below_it() -> None:
    made = [mount.path for mount in mounts_for(plan(readable=("/", "/var")), directories)]
    assert made[0] == "/"
    assert made.index("/var/tmp") > made.index("/")
    assert "/var" not in made


def test_directories_between_a_mount_and_the_workspace_around_it_are_pinned() -> None:
    assert got(plan(writable="/srv/w", masked=("/srv/w/a/b/secret", "/srv/w/a/other"))) == [
        (OPEN, "/srv/w"),
        (OPEN, "/srv/w/a"),
        (OPEN, "/srv/w/a/b"),
        (HIDE, "/srv/w/a/other"),
        (HIDE, "/srv/w/a/b/secret"),
    ]


def test_a_masked_link_that_commands_could_have_made_is_refused() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.DIRECTORY, "/usr" if path == "/srv/w/secret" else path)

    with pytest.raises(RunError, match=r"/srv/w/secret is masked, and .* leads to /usr"):
        got(plan(writable="/srv/w", masked=("/srv/w/secret",)), look)


def test_a_workspace_below_a_masked_directory_is_opened_after_it_is_masked() -> None:
    assert got(plan(writable="/home/op/w", readable=("/",), masked=("/home", "/home/op"))) == [
        (SHOW, "/"),
        (HIDE, "/home"),
        (OPEN, "/home/op/w"),
    ]


def test_a_masked_directory_inside_the_workspace_is_masked_after_it_is_opened() -> None:
    assert got(plan(writable="/srv/w", masked=("/srv/w/secret",))) == [
        (OPEN, "/srv/w"),
        (HIDE, "/srv/w/secret"),
    ]


def test_of_equal_paths_hiding_decides() -> None:
    made = plan(readable=("/", "/data"), masked=("/data",))
    assert got(made) == [(SHOW, "/"), (HIDE, "/data"), (OPEN, "/srv/w")]


def test_what_is_not_shown_needs_no_mask() -> None:
    assert got(plan(readable=("/data",), masked=("/data", "/var/x"))) == [(OPEN, "/srv/w")]


def test_what_a_private_place_hides_already_needs_no_mount() -> None:
    assert got(plan(masked=("/tmp/state", "/var/tmp/x"))) == [(OPEN, "/srv/w")]


def test_a_readable_place_inside_the_workspace_is_made_read_only() -> None:
    assert got(plan(readable=("/srv/w/.git",))) == [(OPEN, "/srv/w"), (SHOW, "/srv/w/.git")]


def test_what_lies_behind_a_barrier_is_hidden_at_the_barrier() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.DIRECTORY, path, "/srv/closed" if path.startswith("/srv/closed/") else None)

    made = plan(readable=("/",), masked=("/srv/closed/a/state",))
    assert got(made, look) == [(SHOW, "/"), (HIDE, "/srv/closed"), (OPEN, "/srv/w")]


def test_a_masked_link_is_masked_where_it_leads() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.FILE, "/data/real.yaml") if path == "/etc/c.yaml" else directories(path)

    made = plan(readable=("/data",), masked=("/etc/c.yaml",))
    assert got(made, look) == [(SHOW, "/data"), (FILE, "/data/real.yaml"), (OPEN, "/srv/w")]


def test_what_is_not_there_is_not_mounted() -> None:
    def look(path: str) -> Seen:
        return directories(path) if path == "/srv/w" else Seen(Kind.MISSING, path)

    assert got(plan(readable=("/none",), masked=("/nowhere",)), look) == [(OPEN, "/srv/w")]


def options(**given: Any) -> list[str]:
    own = [Mount(OWN, path) for path in PRIVATE]
    shown = [Mount(SHOW, "/usr"), Mount(HIDE, "/usr/home"), Mount(OPEN, "/home/op/w"), Mount(FILE, "/usr/c")]
    facts: dict[str, Any] = {
        "env": {"A": "1 2"},
        "cwd": "/home/op/w",
        "network": False,
        "disable_userns": True,
        "links": {"/bin": "usr/bin"},
        "descriptors": {},
    }
    return arguments([*own, *shown], **{**facts, **given})


def pair(words: list[str], *wanted: str) -> bool:
    return any(words[i : i + len(wanted)] == list(wanted) for i in range(len(words)))


def test_every_flag_that_the_sandbox_rests_on_is_given() -> None:
    given = options()
    for flag in ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"):
        assert flag in given
    assert pair(given, "--cap-drop", "ALL")
    assert pair(given, "--ro-bind", "/usr", "/usr")
    assert pair(given, "--symlink", "usr/bin", "/bin")
    assert pair(given, "--remount-ro", "/")
    assert pair(given, "--ro-bind", "/proc/sys", "/proc/sys")
    assert pair(given, "--remount-ro", "/dev")
    assert pair(given, "--remount-ro", "/usr/home")
    assert pair(given, "--ro-bind", "/dev/null", "/usr/c")
    assert pair(given, "--setenv", "A", "1 2")
    assert given.index("--clearenv") < given.index("--setenv")
    assert given[-2:] == ["--chdir", "/home/op/w"]


def test_masked_places_are_closed_after_everything_is_mounted_in_them() -> None:
    given = options()
    assert given.index("--remount-ro") > max(i for i, word in enumerate(given) if word == "--bind")


def test_the_network_is_shared_only_where_the_plan_says_so() -> None:
    assert "--share-net" not in options()
    assert "--share-net" in options(network=True)


def test_what_is_held_is_mounted_by_its_descriptor() -> None:
    given = options(descriptors={"/usr": 7, "/home/op/w": 8})
    assert pair(given, "--ro-bind-fd", "7", "/usr")
    assert pair(given, "--bind-fd", "8", "/home/op/w")
    assert "--bind" not in given


def test_an_older_bubblewrap_is_not_given_what_it_does_not_know() -> None:
    assert "--disable-userns" not in options(disable_userns=False)
