"""The runs in flight: each an owned task that outlives the one who asked, with everyone who watches it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from core.approvals import lifecycle
from core.approvals.ledger import Ledger
from core.errors import BindingMismatch, RunError, StoreError
from core.model.plan import RunOrder, RunResult
from core.model.request import Change, Request
from core.ports import Clock, Runner, RunObserver

log = logging.getLogger(__name__)

Routes = Callable[[], tuple[str, ...]]
PATIENCE_S = 15.0


@dataclass(eq=False)
class _Run:
    """One run in flight; `watchers` get its output as it comes, `why_ended` is set once it is to end."""

    request: Request
    recorded: asyncio.Future[bool]
    watchers: set[RunObserver] = field(default_factory=set)
    task: asyncio.Task[None] | None = None
    why_ended: str | None = None

    def end(self, why: str) -> None:
        """End it, once; where its start is only being recorded, it will not start."""
        if self.why_ended is None:
            self.why_ended = why
            if self.recorded.done() and self.task is not None:
                self.task.cancel()


class Runs:
    """Starts runs, lets others watch them, ends them."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._live: dict[str, _Run] = {}
        self._all: set[_Run] = set()

    async def start(self, change: Change, order: RunOrder, runner: Runner, observer: RunObserver) -> bool:
        """Commit the start of a run, then run; False where its state or grant was not there any more.

        Both happen in a task of their own: an asker that hangs up in between leaves nothing half-done.
        """
        run = _Run(change.request, asyncio.get_running_loop().create_future(), {observer})
        name = f"run-{change.request.short_id}"
        run.task = asyncio.create_task(self._record_and_run(run, change, order, runner), name=name)
        self._all.add(run)
        run.task.add_done_callback(lambda _task: self._all.discard(run))
        return await asyncio.shield(run.recorded)

    @contextmanager
    def watching(self, request_id: str, observer: RunObserver) -> Iterator[None]:
        """Let somebody else see the output of a run from now on."""
        run = self._live.get(request_id)
        if run is None:
            yield
            return
        run.watchers.add(observer)
        try:
            yield
        finally:
            run.watchers.discard(observer)

    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Pass output on to whoever watches."""
        run = self._live.get(request_id)
        for watcher in tuple(run.watchers) if run else ():
            watcher.write(request_id, stream, data)

    def cancel(self, request_id: str, why: str) -> bool:
        """End a run; its outcome is `interrupted`. False where it does not run."""
        run = self._live.get(request_id)
        if run is None:
            return False
        run.end(why)
        return True

    def end(self, why: str, agent: str | None = None) -> tuple[asyncio.Task[None], ...]:
        """End every run (of one agent), those being recorded too; returns what to wait for."""
        runs = [run for run in self._all if agent in (None, run.request.call.agent)]
        for run in runs:
            run.end(why)
        return tuple(run.task for run in runs if run.task)

    async def stop(self, why: str, agent: str | None = None, patience_s: float = PATIENCE_S) -> None:
        """End every run (of one agent), and wait for their ends a while."""
        tasks = self.end(why, agent)
        if tasks:
            await asyncio.wait(tasks, timeout=patience_s)

    async def close(self, why: str, patience_s: float = PATIENCE_S) -> None:
        """End every run for good; an end that cannot be recorded now is recorded by the next daemon."""
        await self.stop(why, patience_s=patience_s)
        late = [run.task for run in self._all if run.task]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._live)

    async def _record_and_run(self, run: _Run, change: Change, order: RunOrder, runner: Runner) -> None:
        try:
            run.recorded.set_result(await self._ledger.commit(change))
        except Exception as error:  # noqa: BLE001 - raised by `start`, for the asker
            run.recorded.set_exception(error)
            return
        finally:
            run.recorded.cancel()  # no effect where it is settled; otherwise nobody may wait for ever
        if run.recorded.result():
            self._live[run.request.id] = run
            self._tell_running(run)
            await self._carry_out(run, order, runner)

    def _tell_running(self, run: _Run) -> None:
        for watcher in tuple(run.watchers):
            watcher.running(run.request.id)

    async def _carry_out(self, run: _Run, order: RunOrder, runner: Runner) -> None:
        try:
            result = await self._result(run, order, runner)
        except asyncio.CancelledError:
            why = run.why_ended or "the daemon was stopped while it ran"
            await self._keep(run, self._ending(lifecycle.interrupted, run, why))
            raise
        except BindingMismatch as error:
            await self._keep(run, self._ending(lifecycle.mismatched, run, str(error)))
        except RunError as error:
            await self._keep(run, self._ending(lifecycle.failed, run, str(error)))
        except Exception as error:  # a fault in a runner is an outcome too: nobody may be left waiting
            log.exception("run %s failed in the runner", run.request.short_id)
            await self._keep(run, self._ending(lifecycle.failed, run, f"{type(error).__name__}: {error}"))
        else:
            await self._keep(run, self._finish(run, result))
        finally:
            self._live.pop(run.request.id, None)

    async def _result(self, run: _Run, order: RunOrder, runner: Runner) -> RunResult:
        if run.why_ended is not None:
            raise asyncio.CancelledError(run.why_ended)
        return await runner.run(order, self)

    def _finish(self, run: _Run, result: RunResult) -> Change:
        return lifecycle.finished(run.request, result, self._clock.now())

    def _ending(self, step: Callable[[Request, str, int], Change], run: _Run, why: str) -> Change:
        return step(run.request, why, self._clock.now())

    async def _keep(self, run: _Run, change: Change) -> None:
        """Record the end; a full disk is waited out, because the end of a run must not be lost."""
        delay = 0.2
        while True:
            try:
                await asyncio.shield(self._ledger.commit(change))
            except StoreError as error:
                log.warning("the end of run %s is not recorded yet: %s", run.request.short_id, error)
            else:
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, 5.0)
