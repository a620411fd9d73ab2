"""Starts one process, streams its output, and returns when nothing of the run is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from adapters.runners.accounts import Account
from adapters.runners.gate import Gate
from adapters.runners.leftovers import Since, kill_leftovers
from adapters.runners.spool import Spool, open_spool
from adapters.runners.threaded import ThreadedProcess, start
from core.errors import RunError
from core.model.plan import RunOrder, RunResult, RunStatus
from core.ports import OutputSink

T = TypeVar("T")

_KILL_DEADLINE_S = 10.0
_DRAIN_DEADLINE_S = 2.0
_PIECE = 256 * 1024  # of output, read at once


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a run: `before` wraps `argv`; `contained` says that bwrap is what wraps it.

    `scoped` keeps it from the abstract sockets of others. `marker` is the id by which what it left is found.
    What bwrap itself is given as `env` never reaches the command.
    Where there is a `gate`, bwrap waits at it until it is let through. `meanwhile` is done in a thread when
    the process has begun, which waits for that; what it raises ends the run, and `supervise` raises it.
    `begins` tells whether the command itself can have begun: what is said before is not the command's.
    """

    before: tuple[str, ...]
    argv: tuple[str, ...]
    account: Account
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | None
    meanwhile: Callable[[subprocess.Popen[bytes]], None]
    begins: Callable[[], bool] = lambda: True
    inherit: tuple[int, ...] = ()
    contained: bool = False
    scoped: bool = False
    marker: str | None = None
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended; `reported` means that bwrap told the command's own status, `begun` that it came to it.

    `said_before` are its own words on stderr, from before it did.
    """

    exit_code: int
    timed_out: bool
    begun: bool
    reported: bool
    killed_from_outside: bool
    duration_ms: int
    said_before: str


@dataclass(frozen=True, slots=True)
class Streams:
    """Where the output of one run goes: to the sink as it comes, and to a spool each."""

    request_id: str
    sink: OutputSink
    stdout: Spool
    stderr: Spool

    @classmethod
    @contextlib.contextmanager
    def opened(cls, order: RunOrder, directory: Path, sink: OutputSink) -> Iterator[Streams]:
        """Open the spools of an order, and close them."""
        cap = order.bound.plan.limits.output_bytes
        out, err = (open_spool(directory, order.request_id, name, cap) for name in ("stdout", "stderr"))
        with contextlib.closing(out), contextlib.closing(err):
            yield cls(order.request_id, sink, out, err)

    def take(self, stream: str, data: bytes) -> None:
        """Take a piece of output."""
        (self.stdout if stream == "stdout" else self.stderr).write(data)
        self.sink.write(self.request_id, stream, data)

    def result(
        self,
        ending: Ending,
        held: tuple[str, ...] = (),
        killed: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> RunResult:
        """Put together what came of the run; `killed` says why it was, if what it began with was changed."""
        (stdout, omitted_stdout), (stderr, omitted_stderr) = self.stdout.text(), self.stderr.text()
        return RunResult(
            status=RunStatus.TIMED_OUT if ending.timed_out else RunStatus.FINISHED,
            exit_code=ending.exit_code,
            stdout=stdout,
            stderr=stderr,
            omitted_stdout=omitted_stdout,
            omitted_stderr=omitted_stderr,
            duration_ms=ending.duration_ms,
            held=held,
            notes=(*killed, *notes),
            tampered=bool(killed),
        )


async def supervise(launch: Launch, streams: Streams, timeout_s: float) -> Ending:
    """Run to the end, to the timeout or to the cancellation; afterwards no process of the run is left."""
    began = time.monotonic()
    timed_out = False
    run, cancelled = await _to_its_end(_start(launch, streams), "start-of-run")
    try:
        if cancelled:
            raise cancelled
        async with asyncio.timeout(timeout_s):
            await _at_the_gate(run)
            await run.process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        _, cancelled = await _to_its_end(_end(run), f"end-of-run-{run.process.pid}")
        if cancelled:
            raise cancelled
    if run.process.fault is not None:
        raise run.process.fault
    return run.ending(timed_out=timed_out, duration_ms=round((time.monotonic() - began) * 1000))


async def _at_the_gate(run: _Run) -> None:
    gate, status = run.launch.gate, run.status
    if gate is None:
        return
    waits = [asyncio.create_task(one) for one in (status.told.wait(), run.readers["status"].ended.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if status.child_pid is not None:
        await gate.let_through(status.child_pid, lambda: run.process.returncode is None)


class _Reader:
    """Hands on what a pipe brings; `ended` is set at its end."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()

    def begin(self) -> None:
        """Hand on from now on."""
        os.set_blocking(self._descriptor, False)
        self._loop.add_reader(self._descriptor, self._read)

    def close(self) -> None:
        """Read no more."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self.ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            return
        if data:
            self._take(data)
        else:
            self.close()


@dataclass(slots=True)
class _Status:
    """What bwrap reports about its child, one JSON object a line."""

    child_pid: int | None = None
    child: int | None = None  # a pidfd: it never names another process, even after the pid is used again
    exit_code: int | None = None
    told: asyncio.Event = field(default_factory=asyncio.Event)  # which process the child is
    _text: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        self._text += data
        *lines, rest = bytes(self._text).split(b"\n")
        self._text = bytearray(rest)
        for line in lines:
            self._read(line)

    def _read(self, line: bytes) -> None:
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            self.exit_code = said.get("exit-code", self.exit_code)
            if "child-pid" in said and self.child is None:
                self.child_pid = said["child-pid"]
                self.told.set()
                with contextlib.suppress(ProcessLookupError):
                    self.child = os.pidfd_open(said["child-pid"])


@dataclass(slots=True)
class _Errors:
    """Hands on what the command says on stderr, and keeps what was said before it can have begun."""

    begins: Callable[[], bool]
    hand_on: Callable[[bytes], None]
    before: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        if self.begins():
            self.hand_on(data)
        else:
            self.before += data


@dataclass(slots=True)
class _Run:
    launch: Launch
    process: ThreadedProcess
    status: _Status
    errors: _Errors
    readers: dict[str, _Reader]
    pipes: contextlib.ExitStack
    began: float
    searched: bool = False

    def kill(self) -> None:
        """Kill all that is known to belong to the run, at once."""
        # What a command left behind in its group outlives its leader; bwrap's group is bwrap alone.
        if self.process.returncode is None or not self.launch.contained:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if self.status.child is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.status.child, signal.SIGKILL)
        held = self.launch.contained
        # Those of a held run cannot hide, so that they are looked for once, when bwrap is gone.
        if self.launch.marker and not (held and (self.process.returncode is None or self.searched)):
            self.searched = True
            since = Since(self.process.pid, time.monotonic() - self.began) if held else None
            kill_leftovers(self.launch.marker, since)

    def ending(self, *, timed_out: bool, duration_ms: int) -> Ending:
        code = self.process.returncode
        own = 128 - code if code is not None and code < 0 else code
        return Ending(
            exit_code=self.status.exit_code if self.status.exit_code is not None else own or 0,
            timed_out=timed_out,
            begun=self.launch.begins(),
            reported=self.status.exit_code is not None,
            killed_from_outside=self.status.child_pid is not None and code is not None and code < 0,
            duration_ms=duration_ms,
            said_before=self.errors.before.decode("utf-8", "replace"),
        )


async def _start(launch: Launch, streams: Streams) -> _Run:
    status = _Status()
    errors = _Errors(launch.begins, partial(streams.take, "stderr"))
    takers: dict[str, Callable[[bytes], None]] = {
        "stdout": partial(streams.take, "stdout"),
        "stderr": errors.take,
        "status": status.take,
    }
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        ends: dict[str, int] = {}
        readers: dict[str, _Reader] = {}
        for name, take in takers.items():
            reading, ends[name] = os.pipe()
            theirs.callback(os.close, ends[name])
            readers[name] = _Reader(reading, take)
            ours.callback(readers[name].close)
        stdin = theirs.enter_context(memory_file(launch.stdin)) if launch.stdin is not None else None
        began = time.monotonic()
        process = await _spawn(launch, ends, stdin)
        for reader in readers.values():
            reader.begin()
        return _Run(launch, process, status, errors, readers, ours.pop_all(), began)


async def _spawn(launch: Launch, ends: Mapping[str, int], stdin: int | None) -> ThreadedProcess:
    status = ("--json-status-fd", str(ends["status"]), "--") if launch.contained else ()
    try:
        return await start(
            (*launch.account.becoming, *launch.before, *status, *launch.argv),
            scoped=launch.scoped,
            meanwhile=launch.meanwhile,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=ends["stdout"],
            stderr=ends["stderr"],
            cwd=launch.cwd,
            env=dict(launch.env),
            pass_fds=(*launch.inherit, *((ends["status"],) if launch.contained else ())),
            start_new_session=True,
            umask=0o022,
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunError(f"{launch.argv[0]} could not be started in {launch.cwd}: {why}") from error


async def _to_its_end(work: Coroutine[Any, Any, T], name: str) -> tuple[T, asyncio.CancelledError | None]:
    """Do a short piece of work whole; return a cancellation that came meanwhile, for the caller to raise."""
    task = asyncio.create_task(work, name=name)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - raised again by result() below
            break
    return task.result(), cancelled


async def _end(run: _Run) -> None:
    try:
        run.kill()
        await _within(run.process.ended, _KILL_DEADLINE_S)
        # The child's pid may have been reported and not yet read; bwrap is gone, so the report is complete.
        await _within(run.readers["status"].ended, _DRAIN_DEADLINE_S)
        run.kill()
        if run.status.child is not None:
            await _gone(run.status.child)
        for name in ("stdout", "stderr"):
            await _within(run.readers[name].ended, _DRAIN_DEADLINE_S)
    finally:
        run.pipes.close()
        if run.status.child is not None:
            os.close(run.status.child)


async def _within(event: asyncio.Event, seconds: float) -> None:
    if event.is_set():
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def _gone(child: int) -> None:
    """Wait until the process behind a pidfd is no more; as init of its namespace it goes last."""
    poller = select.poll()
    poller.register(child, select.POLLIN)
    if poller.poll(0):  # as mostly, when bwrap has ended
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(child, gone.set)
    try:
        await _within(gone, _KILL_DEADLINE_S)
    finally:
        loop.remove_reader(child)


@contextlib.contextmanager
def memory_file(data: bytes) -> Iterator[int]:
    """Give a descriptor from which these bytes can be read, then the end of file."""
    descriptor = os.memfd_create("sayso")
    try:
        fill(descriptor, data)
        yield descriptor
    finally:
        os.close(descriptor)


def fill(descriptor: int, data: bytes) -> None:
    """Put these bytes where they will be read, from the beginning."""
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], written)
