"""Which files of the configuration changed while a run on the host went on that could write them.

A held run does not have these files. But a mask lies on a file: where another takes its place, the kernel
lifts the mask, and what account and modes allow is open to the run. So nothing of that is taken unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from adapters.runners.accounts import Account, host_account
from adapters.runners.host_namespace import keeps_unwritten
from bot.apart import places_on
from bot.config.marks import Mark, mark_of
from core.display import safe_line
from core.model.plan import RunOrder, RunResult, SandboxPlan
from core.model.request import MIN_PREFIX
from core.ports import OutputSink, Runner

_MOST_RUNS = 3  # that one sentence names
_HEAD, _TAIL = 60, 20


@dataclass(frozen=True, eq=False)
class WatchedRun:
    """A run on the host, and how the files of the configuration stood when it began.

    `out_of_reach` are those that its namespace keeps it from writing, also where others take their place.
    """

    request_id: str
    command: str
    account: Account
    before: Mapping[str, Mark | None]
    out_of_reach: frozenset[str]

    def may_have_put(self, path: str, mark: Mark | None) -> bool:
        """Tell whether a file is another than when this run began, which could write it."""
        if path in self.out_of_reach or self.before.get(path) == mark:
            return False
        return any(map(self.account.may_put, places_on(path)))

    @property
    def short_id(self) -> str:
        """As people name it."""
        return self.request_id[:MIN_PREFIX]


@dataclass(frozen=True)
class Doubt:
    """A file whose content may come from runs; those `under_way` can still change it."""

    path: str
    mark: Mark
    under_way: tuple[WatchedRun, ...]
    ended: WatchedRun | None

    def __str__(self) -> str:
        """Name the file, the runs, and the next step."""
        runs = self.under_way or ((self.ended,) if self.ended else ())
        named = "; ".join(
            f"{run.short_id} ({run.command}) as {run.account.name}" for run in runs[:_MOST_RUNS]
        )
        more = f" and {len(runs) - _MOST_RUNS} more" if len(runs) > _MOST_RUNS else ""
        how = "was changed" if any(self.path in run.before for run in runs) else "was first named"
        return (
            f"{self.path}: {how} while a run on the host went on that could write it: {named}{more}. "
            f"{self._step(runs)}look at the file, then run sayso reload again"
        )

    def _step(self, runs: Sequence[WatchedRun]) -> str:
        if not self.under_way:
            return "It has ended: "
        return f"End it (sayso cancel {runs[0].short_id}) or wait for its end, "


class Witness:
    """Notes how the files stand when runs on the host begin and end, and tells what is in doubt.

    Of a run that ended people are told once: nobody changes the file behind their back any more.
    """

    def __init__(self, files: Callable[[], Sequence[str]], secrets: Sequence[str] = ()) -> None:
        self._files = files
        self._secrets = secrets
        self._under_way: dict[str, WatchedRun] = {}
        self._ended: dict[str, WatchedRun] = {}
        self._told: set[tuple[str, str, Mark | None]] = set()

    @contextmanager
    def watching(self, order: RunOrder) -> Iterator[None]:
        """Watch the files while this run goes on; raises RunError where it has no account."""
        command = safe_line(order.bound.canonical, secrets=self._secrets, head=_HEAD, tail=_TAIL)
        before = {path: mark_of(path) for path in self._files()}
        account = host_account(order.bound.plan.user)
        run = WatchedRun(order.request_id, command, account, before, frozenset(_kept(before, order, account)))
        self._under_way[run.request_id] = run
        try:
            yield
        finally:
            self._note_end(run)
            del self._under_way[run.request_id]

    def _note_end(self, run: WatchedRun) -> None:
        for path in {**run.before, **dict.fromkeys(self._files())}:
            mark = mark_of(path)
            if (run.request_id, path, mark) not in self._told and run.may_have_put(path, mark):
                self._ended[path] = run
        self._told = {told for told in self._told if told[0] != run.request_id}

    def doubts(self, read: Mapping[str, Mark]) -> tuple[Doubt, ...]:
        """Tell which of the files that were read, as they stood then, may come from runs."""
        found = (self._doubt(path, mark) for path, mark in read.items())
        return tuple(doubt for doubt in found if doubt.under_way or doubt.ended)

    def _doubt(self, path: str, mark: Mark) -> Doubt:
        runs = tuple(self._under_way.values())
        return Doubt(
            path, mark, tuple(run for run in runs if run.may_have_put(path, mark)), self._ended.get(path)
        )

    def told(self, doubts: Sequence[Doubt]) -> None:
        """Note that the operator was told of these, and looks."""
        for doubt in doubts:
            still = [run for run in doubt.under_way if run.request_id in self._under_way]
            self._told |= {(run.request_id, doubt.path, doubt.mark) for run in still}
            if doubt.ended is not None and self._ended.get(doubt.path) is doubt.ended:
                del self._ended[doubt.path]


def _kept(paths: Iterable[str], order: RunOrder, account: Account) -> Iterator[str]:
    bound = order.bound
    for path in paths:
        if keeps_unwritten(bound.plan, account, path, bound.cwd, by_person=order.by_person):
            yield path


class WatchedRunner:
    """A runner whose runs are watched."""

    def __init__(self, runner: Runner, witness: Witness) -> None:
        self.placement = runner.placement
        self.name = runner.name
        self._runner = runner
        self._witness = witness

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order, as the runner does it."""
        with self._witness.watching(order):
            return await self._runner.run(order, sink)

    def make_workspace(self, plan: SandboxPlan) -> bool:
        """Make the workspace, as the runner does it."""
        return self._runner.make_workspace(plan)
