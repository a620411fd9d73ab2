"""Bubblewrap waits for options that are worked out while it is loaded, and starts nothing without them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners.bubblewrap import encoded, find_bubblewrap
from adapters.runners.late_options import LateOptions
from adapters.runners.leftovers import mark_of
from core.errors import BindingMismatch, RunError
from tests.integration.runners.kit import Place, Recorder, processes_with

OPTIONS = ("--unshare-user", "--dev-bind", "/", "/", "--dev", "/dev", "--tmpfs", mark_of("x"))


def started(tmp_path: Path, given: bytes | None) -> bool:
    """Start what leaves a trace with these options, or, with None, without that any are given."""
    tmp_path.chmod(0o777)
    with LateOptions.awaited() as late:
        witness = ("--chmod", "0755", mark_of("x"))
        command = (find_bubblewrap().path, *late.words, *witness, "--", "/bin/touch", str(tmp_path / "trace"))
        process = subprocess.Popen(command, pass_fds=late.descriptors, stderr=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        assert not (tmp_path / "trace").exists()
        if given is not None:
            os.pwrite(late.descriptors[1], given, 0)
    process.wait(10)
    return (tmp_path / "trace").exists()


def test_it_waits_and_starts_with_all_of_its_options(tmp_path: Path) -> None:
    assert started(tmp_path, encoded(OPTIONS))


def test_a_daemon_that_dies_before_it_has_given_them_starts_nothing(tmp_path: Path) -> None:
    assert not started(tmp_path, None)


@pytest.mark.parametrize("missing", [1, 2, 40])
def test_options_that_are_not_whole_start_nothing(tmp_path: Path, missing: int) -> None:
    assert not started(tmp_path, encoded(OPTIONS)[: -missing - 1])


def test_what_is_given_when_all_is_over_reaches_no_other_file(tmp_path: Path) -> None:
    with LateOptions.awaited() as late:
        pass
    with (tmp_path / "other").open("w+b") as file:
        for descriptor in late.descriptors:
            if descriptor != file.fileno():
                os.dup2(file.fileno(), descriptor)
        late.give(OPTIONS)
        assert (tmp_path / "other").read_bytes() == b""
        for descriptor in late.descriptors:
            if descriptor != file.fileno():
                os.close(descriptor)


async def test_a_run_that_lacks_the_last_of_its_options_does_not_start(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    give = LateOptions.give
    monkeypatch.setattr(LateOptions, "give", lambda late, options: give(late, options[:-4]))
    order = place.shell(f"touch {place.workspace}/trace", runner="host")
    with pytest.raises(RunError, match="chmod"):
        await place.host.run(order, Recorder())
    assert not (place.workspace / "trace").exists()


async def test_an_order_that_changed_starts_nothing_and_leaves_nothing(place: Place) -> None:
    tag = f"76.{os.getpid()}"
    order = place.shell(f"touch {place.workspace}/trace; echo up; sleep {tag}", runner="host")
    changed = replace(order, bound=replace(order.bound, canonical="another"))
    with pytest.raises(BindingMismatch):
        await place.host.run(changed, Recorder())
    assert not (place.workspace / "trace").exists()
    assert processes_with(tag) == []
    heard = Recorder()
    run = asyncio.create_task(place.host.run(order, heard))
    await heard.first.wait()
    assert (place.workspace / "trace").exists()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
