from __future__ import annotations

from adapters.runners.bubblewrap import arguments
from adapters.runners.mounts import Effect, Kind, Mount, Seen, mounts_for
from core.model.plan import Limits, SandboxPlan

HIDE, FILE, SHOW, OPEN = Effect.HIDE_DIRECTORY, Effect.HIDE_FILE, Effect.SHOW, Effect.OPEN


def plan(
    *, writable: str = "/srv/w", readable: tuple[str, ...] = (), masked: tuple[str, ...] = ()
) -> SandboxPlan:
    return SandboxPlan(
        "bubblewrap", writable, (writable,), readable, masked, network=False, env=(), limits=Limits()
    )


def directories(path: str) -> Seen:
    return Seen(Kind.DIRECTORY, path)


def got(made: SandboxPlan, look: object = directories) -> list[tuple[Effect, str]]:
    return [(mount.effect, mount.path) for mount in mounts_for(made, look)]


def test_a_workspace_below_a_masked_directory_is_opened_after_it_is_masked() -> None:
    assert got(plan(writable="/home/op/w", masked=("/home", "/home/op"))) == [
        (HIDE, "/home"),
        (OPEN, "/home/op/w"),
    ]


def test_a_masked_directory_inside_the_workspace_is_masked_after_it_is_opened() -> None:
    assert got(plan(writable="/srv/w", masked=("/srv/w/secret",))) == [
        (OPEN, "/srv/w"),
        (HIDE, "/srv/w/secret"),
    ]


def test_of_equal_paths_hiding_decides() -> None:
    assert got(plan(readable=("/data",), masked=("/data",))) == [(HIDE, "/data"), (OPEN, "/srv/w")]


def test_what_a_private_place_hides_already_needs_no_mount() -> None:
    assert got(plan(masked=("/tmp/state", "/var/tmp/x"))) == [(OPEN, "/srv/w")]


def test_a_readable_place_inside_the_workspace_is_made_read_only() -> None:
    assert got(plan(readable=("/srv/w/.git",))) == [(OPEN, "/srv/w"), (SHOW, "/srv/w/.git")]


def test_what_lies_behind_a_barrier_is_hidden_at_the_barrier() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.DIRECTORY, path, "/srv/closed" if path.startswith("/srv/closed/") else None)

    assert got(plan(masked=("/srv/closed/a/state",)), look) == [(HIDE, "/srv/closed"), (OPEN, "/srv/w")]


def test_a_masked_link_is_masked_where_it_leads() -> None:
    def look(path: str) -> Seen:
        return Seen(Kind.FILE, "/data/real.yaml") if path == "/etc/c.yaml" else directories(path)

    assert got(plan(masked=("/etc/c.yaml",)), look) == [(FILE, "/data/real.yaml"), (OPEN, "/srv/w")]


def test_what_is_not_there_is_not_mounted() -> None:
    def look(path: str) -> Seen:
        return directories(path) if path == "/srv/w" else Seen(Kind.MISSING, path)

    assert got(plan(readable=("/none",), masked=("/nowhere",)), look) == [(OPEN, "/srv/w")]


def options(network: bool = False, disable_userns: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - a test's helper
    mounts = (Mount(HIDE, "/home"), Mount(OPEN, "/home/op/w"), Mount(FILE, "/etc/c.yaml"))
    return arguments(
        mounts,
        env={"A": "1 2"},
        cwd="/home/op/w",
        network=network,
        disable_userns=disable_userns,
        resolver_file="/run/resolv.conf",
    )


def pair(words: list[str], *wanted: str) -> bool:
    return any(words[i : i + len(wanted)] == list(wanted) for i in range(len(words)))


def test_every_flag_that_the_sandbox_rests_on_is_given() -> None:
    given = options()
    for flag in ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"):
        assert flag in given
    assert pair(given, "--cap-drop", "ALL")
    assert pair(given, "--ro-bind", "/", "/")
    assert pair(given, "--ro-bind", "/proc/sys", "/proc/sys")
    assert pair(given, "--remount-ro", "/dev")
    assert pair(given, "--remount-ro", "/home")
    assert pair(given, "--ro-bind", "/dev/null", "/etc/c.yaml")
    assert pair(given, "--setenv", "A", "1 2")
    assert given.index("--clearenv") < given.index("--setenv")
    assert given[-2:] == ["--chdir", "/home/op/w"]


def test_masked_places_are_closed_after_everything_is_mounted_in_them() -> None:
    given = options()
    assert given.index("--remount-ro") > max(i for i, word in enumerate(given) if word == "--bind")


def test_the_network_is_shared_only_where_the_plan_says_so() -> None:
    assert "--share-net" not in options()
    assert "/run/resolv.conf" not in options()
    assert "--share-net" in options(network=True)
    assert pair(options(network=True), "--ro-bind", "/run/resolv.conf", "/run/resolv.conf")


def test_an_older_bubblewrap_is_not_given_what_it_does_not_know() -> None:
    assert "--disable-userns" not in options(disable_userns=False)
