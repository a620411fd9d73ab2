"""Tries, before anything rests on it, whether a run on the host can be held from Sayso's own state here."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from adapters.runners.accounts import Account, host_account
from adapters.runners.bubblewrap import encoded, find_bubblewrap
from adapters.runners.guardian import UNGUARDED, Guardian
from adapters.runners.host import namespace_options
from adapters.runners.leftovers import MARKER
from adapters.runners.process import memory_file
from adapters.runners.syscalls import sealed
from adapters.runners.threaded import scopes_abstract_sockets
from core.errors import RunError
from core.model.plan import SandboxPlan

_BOUND: Final = Path("/proc/net/unix")
_PATH_COLUMN: Final = 7
_PATIENCE_S: Final = 10.0
_IN_SIGHT: Final = 20  # lines of what a trial says that are worth telling
# Says what of these paths is still in sight, and whether rights could be gained; nothing where all is held.
_LOOK: Final = """
outside=$1
shift
for path; do
  if [ -d "$path" ]; then [ -z "$(ls -A "$path" 2>/dev/null)" ] || echo "$path is in sight"
  elif [ -s "$path" ] && [ -r "$path" ]; then echo "$path is in sight"
  fi
done
[ "$(readlink /proc/self/ns/user)" != "$outside" ] || echo "it has no user namespace of its own"
grep -q "^NoNewPrivs:.1" /proc/self/status || echo "programs could gain rights in it"
grep -q "^CapEff:.0*$" /proc/self/status || echo "it has capabilities"
"""
_ENV: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def why_not_held(plan: SandboxPlan, guardian: Guardian = UNGUARDED) -> str | None:
    """Hold a run that only looks around, and say why it could not be, or what it saw; None where it could.

    The guardian ends it where the daemon is killed meanwhile.
    """
    account = host_account(plan.user)
    if account.uid == 0:
        return "commands on the host run as root, whom no namespace holds (tools.exec.hostUser names another)"
    doubt = next(_doubts(plan, account), None)
    if doubt is not None:
        return doubt
    try:
        trial = f"trial-{secrets.token_hex(8)}"
        with guardian.over(trial):
            said = _look_around(plan, account, {**_ENV, MARKER: trial})
    except (RunError, OSError, subprocess.TimeoutExpired) as error:
        return f"a mount namespace for runs on the host could not be made: {error}"
    return f"a run on the host would not be held: {said}" if said else None


def _doubts(plan: SandboxPlan, account: Account) -> Iterator[str]:
    """Find what no mount can take away: other names of Sayso's own files, and sockets without a name."""
    if not scopes_abstract_sockets() and (socket := _abstract_socket()):
        yield (
            f"a program listens on the abstract socket {socket}, which only Linux 6.12 or newer (Landlock) "
            "can keep a run from"
        )
    for path in plan.masked:
        if account.barrier(os.path.realpath(path)) is not None:
            continue
        link = next((part for part in _way(path) if part.is_symlink()), None)
        if link is not None and account.may_change(str(link.parent)):
            yield f"{link} is a link that {account.name} could exchange; name the place where it leads"
        file = Path(path)
        if file.is_file() and file.stat().st_nlink > 1:
            yield f"{path} has {file.stat().st_nlink} names (hard links), which no mount takes away"


def _abstract_socket() -> str | None:
    rows = (line.split(None, _PATH_COLUMN) for line in _BOUND.read_bytes().splitlines()[1:])
    names = (os.fsdecode(row[_PATH_COLUMN]) for row in rows if len(row) > _PATH_COLUMN)
    return next((name for name in names if name.startswith("@")), None)


def _way(path: str) -> tuple[Path, ...]:
    return (Path(path), *Path(path).parents)


def _look_around(plan: SandboxPlan, account: Account, env: Mapping[str, str]) -> str:
    bwrap = find_bubblewrap()
    outside = str(Path("/proc/self/ns/user").readlink())
    options = namespace_options(plan, account, bwrap, env=env, cwd="/")
    with memory_file(encoded(options)) as descriptor, sealed(sockets=False) as seal:
        done = subprocess.run(
            [
                bwrap.path,
                *seal.options,
                "--args",
                str(descriptor),
                "--",
                "/bin/sh",
                "-c",
                _LOOK,
                "sh",
                outside,
                *plan.masked,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            env={MARKER: env[MARKER]},
            pass_fds=(*seal.descriptors, descriptor),
            timeout=_PATIENCE_S,
            check=False,
            **account.identity,
        )
    said = (done.stdout + done.stderr).decode("utf-8", "replace").split("\n")[:_IN_SIGHT]
    words = "; ".join(line for line in said if line)
    return words or (f"it ended with status {done.returncode}" if done.returncode else "")
