"""`python -m tests.fuzz SECONDS`: look for lines that break what the analysis promises; `--seed N`."""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters.parsers.pool import ParserPool
from core.shell.assemble import assemble
from core.shell.scan import Refused, scan
from tests.fuzz.lines import SEEDS, mutated
from tests.fuzz.promises import STUBBED, Broken, Promises
from tests.fuzz.reach import Reach
from tests.stub_machine import Machine

_MOST_TOLD = 20
_COMPARED_EVERY = 3
_TOLD_EVERY_S = 30.0


class Fuzzer:
    """Keeps each line that reaches something new, and makes the next ones of those."""

    def __init__(self, promises: Promises, seed: int) -> None:
        self._promises = promises
        self._chance = random.Random(seed)  # noqa: S311 - it chooses inputs of a test
        self._reach = Reach()
        self.kept: list[str] = []
        self.tried = 0
        self.broken: dict[str, str] = {}

    def run(self, seconds: float) -> None:
        """Try lines until the time is over, or enough promises are broken."""
        until, tell_at = time.monotonic() + seconds, time.monotonic() + _TOLD_EVERY_S
        for seed in SEEDS:
            self._try(seed)
        while time.monotonic() < until and len(self.broken) < _MOST_TOLD:
            self._try(mutated(self._chance.choice(self.kept), self.kept, self._chance))
            if time.monotonic() > tell_at:
                tell_at += _TOLD_EVERY_S
                print(self.told(), flush=True)

    def told(self) -> str:
        """Say how far it is."""
        return (
            f"{self.tried} lines tried, {len(self.kept)} kept, {len(self._reach)} steps reached, "
            f"{self._promises.compared} compared with bash, {len(self.broken)} kinds of broken promises"
        )

    def _try(self, line: str) -> None:
        self.tried += 1
        try:
            with self._reach.watching():
                _scanned(line)
                facts = self._promises.look(line)
            self._promises.hold(line, facts)
            fresh = self._reach.fresh() > 0
            if fresh:
                self.kept.append(line)
            if fresh or self.tried % _COMPARED_EVERY == 0:
                self._promises.compare(line, facts)
        except Exception as error:  # noqa: BLE001 - each is a finding
            self._note(line, error)

    def _note(self, line: str, error: Exception) -> None:
        kind = error.promise if isinstance(error, Broken) else f"nothing is raised: {type(error).__name__}"
        if kind not in self.broken or len(line) < len(self.broken[kind]):
            self.broken[kind] = line
            print(f"BROKEN {kind}: {line!r} {error}", flush=True)


def _scanned(line: str) -> None:
    """Scan here too: for most lines another process does it, whose steps are not seen."""
    try:
        assemble(scan(line))
    except Refused:
        return


@contextmanager
def _promises() -> Iterator[Promises]:
    account = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="sayso-fuzz-", dir="/var/tmp") as root, ParserPool(1) as parsers:
        Path(root).chmod(0o755)
        parsers.start()
        yield Promises(Machine(Path(root), names=STUBBED, account=account), parsers)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # a parser that was replaced is nothing new here
    print(f"seed {given.seed}")
    with _promises() as promises:
        fuzzer = Fuzzer(promises, given.seed)
        fuzzer.run(given.seconds)
    print(fuzzer.told())
    return 1 if fuzzer.broken else 0


if __name__ == "__main__":
    sys.exit(main())
