"""Who else could put another configuration in the place of this one: looked at before it counts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from adapters.runners.accounts import is_own, own_name
from bot.config.loaded import LoadedConfig
from bot.config.way import Step, Way, another_on
from bot.mend import account_name, run_on
from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Exposed:
    """What others could change or exchange, and what is to be done."""

    what: str
    mend: str

    def __str__(self) -> str:
        """Tell both."""
        return f"{self.what}; {self.mend}"


def refuse_exposed(loaded: LoadedConfig) -> None:
    """Raise ConfigError for files of the configuration that others could change or exchange."""
    if found := [exposed for path, way in loaded.ways.items() if (exposed := exposed_on(path, way))]:
        raise ConfigError("\n".join(map(str, found)))


def exposed_on(path: str, way: Way) -> Exposed | None:
    """Find the first on the way to a file that others than root and this process' user can change."""
    return next((exposed for step in way if (exposed := _exposed(path, step))), None)


def _exposed(path: str, step: Step) -> Exposed | None:
    if step.uid not in {0, os.geteuid()}:
        return _of_somebody_else(path, step)
    if not step.others_write or (step.is_directory and step.is_sticky):
        return None
    mode = f"mode {stat.S_IMODE(step.mode):04o}"
    if not step.is_directory:
        return Exposed(
            f"{path} can be changed by other users ({mode}), and so the policy", _closing(step.path)
        )
    mend = _closing(step.path) if is_own(step.path) else _elsewhere()
    return Exposed(
        f"{path}: other users can change {step.path} ({mode}), and so put another file in its place", mend
    )


def _of_somebody_else(path: str, step: Step) -> Exposed:
    owner = account_name(step.uid)
    if step.is_link:
        what = f"{path}: {step.path} is a link that belongs to {owner}, who could lead it elsewhere"
        return Exposed(what, "name the file where it leads, or have the link made by its reader or root")
    if step.is_directory:
        what = f"{path}: {step.path} belongs to {owner}, who could put another file in its place"
        return Exposed(what, _elsewhere())
    what = f"{path} belongs to {owner}, who can change it, and so the policy"
    return Exposed(what, f"look at it, then {run_on(step.path, f'chown {os.geteuid()}')}")


def _closing(path: str) -> str:
    return f"look at what it holds, then close it: {run_on(path, 'chmod go-w')}"


def _elsewhere() -> str:
    whose = "root" if os.geteuid() == 0 else f"root or the user {own_name()}"
    return (
        f"keep the file where all directories above it belong to {whose}, and nobody else can write to them"
    )


def exchanged(before: Mapping[str, Way], now: Mapping[str, Way]) -> Iterator[str]:
    """Say of each file to which other directories lead than before that it may not be the operator's."""
    for path, way in now.items():
        if path in before and (directory := another_on(before[path], way)):
            yield (
                f"{path}: the directory {directory} is another one than when Sayso last read this file, so "
                "that somebody may have exchanged it; if that was you, restart Sayso"
            )
