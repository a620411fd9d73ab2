"""What a sandbox mounts is what was meant: nothing that a command put in its place comes in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners import bubblewrap, mounts
from adapters.runners.accounts import running_account
from adapters.runners.bubblewrap import find_bubblewrap
from adapters.runners.sources import Sources, exchanged, open_without_links
from core.approvals.binding import bind
from core.errors import BindingMismatch, RunError
from core.model.plan import RunOrder
from tests.integration.runners.kit import Place, Recorder, place_on_disk

RUNS = 40
MOST_TRIES = 400
FLIP = """
import ctypes, os, sys
libc, here, there = ctypes.CDLL(None, use_errno=True), *map(os.fsencode, sys.argv[1:])
print("flipping", flush=True)
while True:
    if libc.renameat2(-100, here, -100, there, 2) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
"""
OLDER_OR_NEWER = pytest.mark.parametrize("takes_descriptors", [True, False])


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


@pytest.fixture
def bwrap(monkeypatch: pytest.MonkeyPatch, takes_descriptors: bool) -> None:  # noqa: FBT001
    """Use bubblewrap as one that takes descriptors, or as one that does not."""
    found = find_bubblewrap()
    if takes_descriptors and not found.takes_descriptors:
        pytest.skip("this bubblewrap takes no descriptors")
    used = replace(found, takes_descriptors=takes_descriptors)
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: used)


def owned(path: Path) -> Path:
    path.mkdir()
    account = running_account("nobody")
    os.chown(path, account.uid, account.gid)
    return path


def nested(place: Place) -> tuple[Path, Path, Path]:
    """Lay out a workspace, one inside it, and a directory of secrets; beside the inner a link to that."""
    outer = owned(place.root / "outer")
    inner = owned(outer / "inner")
    secrets = owned(place.root / "secrets")
    (secrets / "secret").write_text("from outside")
    (outer / "link").symlink_to(secrets)
    return inner, outer / "link", secrets


def order_in(place: Place, workspace: Path, script: str) -> RunOrder:
    at = str(workspace)
    return place.shell(script, cwd=at, plan=lambda plan: replace(plan, workspace=at, writable=(at,)))


def by_path(workspace: Path, script: str) -> str:
    """Run in a sandbox that is given the path alone, as nothing of Sayso would."""
    account = running_account("nobody")
    identity = {"user": account.uid, "group": account.gid, "extra_groups": ()} if account.drop else {}
    system = "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
    command = ["bwrap", "--unshare-all", *system.split(), "--bind", workspace, workspace]
    done = subprocess.run(
        [*command, "--chdir", workspace, "--", "/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **identity,
    )
    return done.stdout


@contextmanager
def flipping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names as fast as the kernel can."""
    command = [sys.executable, "-I", "-S", "-c", FLIP, one, other]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "flipping\n"
        try:
            yield
            assert process.poll() is None, "the names were exchanged until the end"
        finally:
            process.kill()


@OLDER_OR_NEWER
@pytest.mark.usefixtures("bwrap")
async def test_a_workspace_that_became_a_link_is_not_entered(place: Place) -> None:
    inner, link, secrets = nested(place)
    inner.rmdir()
    link.rename(inner)
    script = "cat secret; touch taken"
    with pytest.raises(RunError, match=r"inner is a link that was not there .* start Sayso again"):
        await place.sandbox.run(order_in(place, inner, script), Recorder())
    assert not (secrets / "taken").exists()
    assert by_path(inner, script) == "from outside", "the control: by its path it is entered"
    assert (secrets / "taken").exists()


@pytest.mark.parametrize("takes_descriptors", [True])
@pytest.mark.usefixtures("bwrap")
async def test_a_readable_place_that_became_a_link_is_not_shown(place: Place) -> None:
    inner, link, _ = nested(place)
    plan = replace(place.plan, readable=(str(inner),))
    (inner / "secret").write_text("harmless")
    assert (
        await place.sandbox.run(place.shell(f"cat {inner}/secret", plan=lambda _: plan), Recorder())
    ).stdout
    (inner / "secret").unlink()
    inner.rmdir()
    link.rename(inner)
    with pytest.raises(RunError, match="inner is a link"):
        await place.sandbox.run(place.shell(f"cat {inner}/secret", plan=lambda _: plan), Recorder())


@OLDER_OR_NEWER
@pytest.mark.usefixtures("bwrap")
async def test_a_workspace_flipped_with_a_link_never_lets_a_run_out(place: Place) -> None:
    inner, link, secrets = nested(place)
    ran = refused = 0
    with flipping(inner, link):
        for _ in range(RUNS):
            try:
                result = await place.sandbox.run(
                    order_in(place, inner, "cat secret; touch taken"), Recorder()
                )
            except RunError:
                refused += 1
                continue
            ran += 1
            assert result.stdout == ""
            assert not (secrets / "taken").exists()
        assert ran + refused == RUNS
        assert refused, "the names were exchanged while runs started"
        read = (by_path(inner, "cat secret; touch taken") for _ in range(MOST_TRIES))
        assert "from outside" in read, "the control: a sandbox that is given the path is let out"


@pytest.mark.parametrize("takes_descriptors", [False])
@pytest.mark.usefixtures("bwrap")
async def test_what_an_older_bubblewrap_mounted_is_compared_before_anything_starts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, link, secrets = nested(place)
    hold = Sources.hold

    def exchange_after(sources: Sources, path: str) -> object:
        held = hold(sources, path)
        if path == str(inner) and not inner.is_symlink():
            inner.rename(inner.with_name("aside"))
            link.rename(inner)
        return held

    monkeypatch.setattr(Sources, "hold", exchange_after)
    with pytest.raises(BindingMismatch, match=r"what is at .*/inner changed"):
        await place.sandbox.run(order_in(place, inner, "touch taken"), Recorder())
    assert not (secrets / "taken").exists()
    monkeypatch.setattr("adapters.runners.gate.exchanged", lambda *_: None)
    inner.rename(link)
    inner.with_name("aside").rename(inner)
    await place.sandbox.run(order_in(place, inner, "touch taken"), Recorder())
    assert (secrets / "taken").exists(), "the control: without the comparison it gets out"


@OLDER_OR_NEWER
@pytest.mark.usefixtures("bwrap")
async def test_no_descriptor_of_a_source_reaches_the_command(place: Place) -> None:
    script = "for f in /proc/self/fd/* /proc/1/fd/*; do readlink $f; done; true"
    found = (await place.sandbox.run(place.shell(script), Recorder())).stdout.splitlines()
    assert not [each for each in found if each.startswith(("/usr", "/etc", "/opt", str(place.root)))], found


@OLDER_OR_NEWER
@pytest.mark.usefixtures("bwrap")
async def test_bubblewrap_s_own_failure_is_told(place: Place) -> None:
    order = place.order("/bin/sh", "-c", "true")
    broken = replace(order.bound, cwd=f"{place.plan.workspace}/none")
    with pytest.raises(RunError, match=r"sandbox could not be set up: bwrap: .*none"):
        await place.sandbox.run(replace(order, bound=broken, expected=bind(broken)), Recorder())


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("takes_descriptors", [True])
@pytest.mark.usefixtures("bwrap")
async def test_a_directory_above_a_masked_one_cannot_be_renamed(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    pinned: bool,  # noqa: FBT001 - without it is the control
) -> None:
    masked = f"{place.plan.workspace}/a/conf"
    plan = replace(place.plan, masked=(*place.plan.masked, masked))
    await place.sandbox.run(place.shell(f"mkdir -p {masked} && echo secret > {masked}/token"), Recorder())
    if not pinned:
        monkeypatch.setattr(mounts, "_pins", lambda _: ())
    script = "mv a b; mkdir -p a/conf; echo forged > a/conf/token; cat a/conf/token"
    await place.sandbox.run(place.shell(script, plan=lambda _: plan), Recorder())
    left = (place.workspace / "a" / "conf" / "token").read_text()
    assert left == ("secret\n" if pinned else "forged\n")


def test_no_component_of_a_path_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    os.close(open_without_links(str(tmp_path / "real" / "below")))
    for path in (tmp_path / "link", tmp_path / "link" / "below"):
        with pytest.raises(RunError, match=f"{tmp_path}/link is a link"):
            open_without_links(str(path))
    with pytest.raises(RunError, match="none: No such file or directory"):
        open_without_links(str(tmp_path / "none" / "below"))


def test_another_inode_under_the_same_name_is_found(tmp_path: Path) -> None:
    path = tmp_path / "work"
    path.mkdir()
    with Sources.opened() as sources:
        sources.hold(str(path))
        assert exchanged(os.getpid(), sources.all) is None
        path.rename(tmp_path / "aside")
        assert exchanged(os.getpid(), sources.all) == str(path)
        path.symlink_to(tmp_path / "aside")
        assert exchanged(os.getpid(), sources.all) == str(path), "a link to the very same one does not count"
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many
    assert len(os.listdir("/proc/self/fd")) == before - 1  # noqa: PTH208 - as above
