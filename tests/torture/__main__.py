"""`make torture`: kill the daemon at random instants under load.

`--kills N --seed N --base DIRECTORY`; with `--required N` so many different people must say yes (as root).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from tests.torture.ordeal import Ordeal
from tests.torture.site import PEOPLE, site


def _say(line: str) -> None:
    print(line, flush=True)


async def _torture(kills: int, seed: int, base: str, required: int) -> int:
    _say(f"seed {seed}, {kills} kills")
    began = time.monotonic()
    with site(base, required) as place:
        ordeal = Ordeal(place, seed, kills, _say)
        found = await ordeal.run()
        counts = {name: n for name, n in ordeal.notes.counts.items() if not name.startswith("accepted ")}
        _say(f"heard: {dict(sorted(counts.items()))}")
        _say(f"kept: {dict(sorted(found.seen.items()))}")
        _say(f"{kills} kills in {time.monotonic() - began:.0f} s, seed {seed}: {found.told()}")
        if found.faults:
            _say(f"the log's end:\n{ordeal.log()}")
    return 1 if found.faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--base", default="/var/tmp")
    parser.add_argument("--required", type=int, default=1, choices=range(1, len(PEOPLE) + 1))
    given = parser.parse_args()
    return asyncio.run(_torture(given.kills, given.seed, given.base, given.required))


if __name__ == "__main__":
    sys.exit(main())
