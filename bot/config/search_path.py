"""Directories of the PATH in which others than root could put programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from adapters.runners.accounts import is_own
from bot.mend import run_on
from core.config import Config
from core.sandbox.plan import SYSTEM_PATH

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def search_path_doubts(config: Config) -> Iterator[str]:
    """Name each entry of `tools.exec.pathPrepend` that others than root can change, and what that means."""
    for index, directory in enumerate(config.exec.path_prepend):
        if (changed := changeable_part(directory)) is not None:
            key = f"tools.exec.pathPrepend[{index}]"
            yield f"{key}: {_means(directory, changed)}; {_mend(directory, changed)}"


def changeable_directories(config: Config) -> Iterator[tuple[str, str]]:
    """Give for each directory of commands that others than root can change what it means, and the mend."""
    for directory in dict.fromkeys((*config.exec.path_prepend, *SYSTEM_PATH)):
        if (changed := changeable_part(directory)) is not None:
            yield _means(directory, changed), _mend(directory, changed)


def _mend(directory: str, changed: str) -> str:
    """Say how to close it to others: by a command where it serves this account alone, and nothing else."""
    if changed != directory or not is_own(changed):
        return "let only root write there, or take it off the PATH"
    owned = () if os.geteuid() == 0 else ("chown root",)
    return f"{run_on(changed, *owned, 'chmod go-w')}, or take it off the PATH"


def changeable_part(directory: str) -> str | None:
    """Return the part of a path, or of where it leads, that others than root can write to."""
    for part in _parts((directory, os.path.realpath(directory))):
        try:
            found = os.stat(part)  # noqa: PTH116 - beside realpath, which pathlib has not in this form
        except OSError:
            continue
        if found.st_uid or found.st_mode & _OTHERS_WRITE:
            return part
    return None


def _parts(paths: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(str(part) for path in paths for part in (Path(path), *Path(path).parents))


def _means(directory: str, changed: str) -> str:
    why = "" if changed == directory else f" ({changed} on the way)"
    return (
        f"others than root can write to {directory}{why}, where programs are looked for, so no bare name or "
        "glob of an allowlist admits what is found there"
    )
