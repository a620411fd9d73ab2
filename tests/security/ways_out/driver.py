"""Tries every way in a run that is held and, as the control, in one that is not; prints what succeeded.

Started as root with `root` (a daemon that drops to an account for each run) or `user` (a daemon that is the
account itself, which this process becomes once all is imported).
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import pwd
import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import thread  # noqa: F401 - asyncio imports it late
from dataclasses import dataclass, replace
from encodings import idna  # noqa: F401 - as above

from adapters.runners import host
from adapters.runners.accounts import host_account
from adapters.runners.host import HostRunner
from core.approvals.binding import bind
from core.config import ExecSettings
from core.model.command import Placement
from core.model.plan import BoundCommand, RunOrder, RunResult
from core.sandbox.plan import host_plan
from tests.integration.runners.kit import Files, Recorder
from tests.security.ways_out.table import GAIN, HOMELY, LEAK, WAYS, WORK, Way
from tests.security.ways_out.world import REACHED, SECRET, World, a_world, cgroups

CAP_DAC_READ_SEARCH = bytes.fromhex("0100000204000000000000000000000000000000")
_SECONDS = 10
SHARES = 4  # what one process tries is so much shorter than all


@dataclass(frozen=True)
class Daemon:
    """Whose runs these are; `user` is whom root becomes for them."""

    uid: int
    gid: int
    user: str | None

    async def succeeds(
        self, way: Way, script: str, unheld: str | None = None, *, by_person: bool = False
    ) -> bool:
        """Try a way in a world of its own."""
        with a_world(self.uid, self.gid) as world:
            if self.user:
                _risen(world)
            # No account of this machine has its home there.
            host.host_account = lambda user: replace(host_account(user), home=str(world.home))
            result = await self._run(world, way, script, unheld, by_person=by_person)
            return _shown(way, result, world)

    async def _run(
        self, world: World, way: Way, script: str, unheld: str | None, *, by_person: bool
    ) -> RunResult:
        plan = host_plan(
            ExecSettings(),
            own=world.own,
            program=(str(world.program),),
            workspace=str(world.base / way.workspace),
            account=self.user,
            unheld=unheld,
            timeout_s=_SECONDS,
        )
        env = tuple(sorted(world.names().items()))
        cwd = str(world.base / (way.cwd or way.workspace))
        bound = BoundCommand("main", "agent:main:main", "way", cwd, env, None, Placement.HOST, plan, ())
        order = RunOrder(
            f"way-{world.base.name}", ("/bin/sh", "-c", script), bound, bind(bound), by_person=by_person
        )
        runner = HostRunner(Files(), world.base / "output", str(world.base / "workspaces"))
        return await runner.run(order, Recorder())


def _shown(way: Way, result: RunResult, world: World) -> bool:
    if way.proof == GAIN:
        return result.exit_code == 0
    if way.proof == LEAK:
        return SECRET in result.stdout or REACHED.decode() in result.stdout
    return world.spoiled() != ""


def _risen(world: World) -> None:
    """Put programs of root there that take rights, and what only they can read."""
    secret = world.base / "of-root"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    for name in ("risen", "capable"):
        shutil.copy("/bin/cat", world.base / name)
        (world.base / name).chmod(0o755)
    (world.base / "risen").chmod(0o4755)
    os.setxattr(world.base / "capable", "security.capability", CAP_DAC_READ_SEARCH)


def _become(uid: int, gid: int) -> None:
    os.setgroups(())
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a process that was always this user's


def _share(ways: Iterable[Way], number: int) -> list[Way]:
    return list(ways)[number::SHARES]


async def main(arrangement: str, number: int) -> None:
    """Try a share of all ways; the arrangements run as different accounts, out of each other's reach."""
    account = pwd.getpwnam({"root": "nobody", "user": "daemon"}[arrangement])
    if arrangement == "user":
        _become(account.pw_uid, account.pw_gid)
    daemon = Daemon(account.pw_uid, account.pw_gid, account.pw_name if arrangement == "root" else None)
    found = {}
    for way in _share(WAYS.values(), number):
        if (way.needs_root and arrangement == "user") or (way.needs_cgroup and cgroups() is None):
            continue
        held = await daemon.succeeds(way, way.script)
        control = await daemon.succeeds(way, way.control or way.script, "the control")
        found[way.name] = {"held": held, "control": control}
    work = {way.name: await daemon.succeeds(way, way.script) for way in _share(WORK, number)}
    homely = {
        way.name: await daemon.succeeds(way, way.script, by_person=True) for way in _share(HOMELY, number)
    }
    json.dump({"ways": found, "work": work, "by a person": homely}, sys.stdout)


if __name__ == "__main__":
    os.chdir("/")
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
