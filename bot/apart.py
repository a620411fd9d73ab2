"""Which places must lie apart, because a command that can write one could exchange the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from posixpath import dirname

from core.config import Config
from core.errors import ConfigError
from core.model.plan import WorkspaceAccess

_MOST_LINKS = 40  # as many as the kernel follows
_MADE_BY_SAYSO = ("agent-", "session-", "shared")


@dataclass(frozen=True)
class Place:
    """A path, and what it is called where somebody can change it."""

    key: str
    path: str

    @cached_property
    def way(self) -> tuple[str, ...]:
        """All that decides where the path leads: each link on the way, and where it ends."""
        return tuple(_way(str(Path.cwd() / self.path)))

    @property
    def real(self) -> str:
        """Where the path ends."""
        return self.way[-1]

    def __str__(self) -> str:
        """Name both, and where links lead."""
        return f"{self.key} ({self.path}{f', which is {self.real}' if self.real != self.path else ''})"


@dataclass(frozen=True, slots=True)
class Sockets:
    """The agents' own, and the operator's: by default in SAYSO_HOME, or where `--socket` says."""

    agents: str | None = None
    operators: str | None = None


def refuse_entangled(
    config: Config, home: str, workspace_root: str, protected: Sequence[str], sockets: Sockets
) -> None:
    """Raise ConfigError for the first two places that lie in one another and must not; it names both."""
    root = Place("sandboxing.workspaceRoot", workspace_root)
    workspaces = [
        Place(f"agents.{name}.workspace", agent.workspace)
        for name, agent in config.agents.by_id.items()
        if agent.workspace is not None
    ]
    _apart_from_state(Place("SAYSO_HOME", home), (root, *workspaces))
    _apart_from_root(root, workspaces)
    _apart_from_each_other(workspaces)
    writable = [root, *(one for one in workspaces if _is_written(config, one))]
    _out_of_reach(_kept(config, home, protected, sockets), writable)
    _ways_out_of_reach(config, workspaces, root, writable)


def places_on(path: str) -> tuple[str, ...]:
    """List each link on the way to a file, and where it ends; a link in any of them leads elsewhere."""
    return Place("", path).way


def own_files() -> tuple[Place, ...]:
    """Return where Sayso's program files and its environment lie."""
    program = Place("Sayso's program files", str(Path(__file__).parents[1]))
    return (program, Place("the Python environment that Sayso runs in", sys.prefix))


def _apart_from_state(home: Place, workspaces: Iterable[Place]) -> None:
    for one in workspaces:
        if _within(one.real, home.real) or _within(home.real, one.real):
            raise ConfigError(
                f"{one.key}: {one.real} and Sayso's state in {home.real} lie in one another, and no command "
                "may touch that state; choose a place apart from it"
            )


def _apart_from_root(root: Place, workspaces: Iterable[Place]) -> None:
    for one in workspaces:
        first, _, rest = one.real.removeprefix(root.real).lstrip("/").partition("/")
        among_made = one.real == root.real or (rest and first.startswith(_MADE_BY_SAYSO))
        if _within(root.real, one.real) or (_within(one.real, root.real) and among_made):
            raise ConfigError(
                f"{one} and {root}, where Sayso makes a workspace for each that has none, lie in one "
                "another: what works in one could exchange the other; choose a place apart from it"
            )


def _apart_from_each_other(workspaces: Sequence[Place]) -> None:
    by_path = {one.real: one for one in workspaces}
    for inner in workspaces:
        for above in Path(inner.real).parents:
            if outer := by_path.get(str(above)):
                raise ConfigError(
                    f"{inner} lies in {outer}: a command in the outer one could put something else in the "
                    "place of the inner one; give both the same directory, or two that lie apart"
                )


def _is_written(config: Config, workspace: Place) -> bool:
    agent = config.agents.by_id[workspace.key.split(".", 1)[1].removesuffix(".workspace")]
    access = agent.sandbox.workspace_access or config.sandboxing.workspace_access
    return access is WorkspaceAccess.RW


def _kept(config: Config, home: str, protected: Sequence[str], sockets: Sockets) -> Iterator[Place]:
    yield Place("SAYSO_HOME", home)
    # Who binds another socket in the place of one is told the tokens of those who ask.
    if sockets.agents is not None:
        by_default = "" if config.daemon.socket.path else ", its default"
        yield Place(f"daemon.socket.path{by_default}", sockets.agents)
    if sockets.operators is not None:
        yield Place("--socket", sockets.operators)
    for index, path in enumerate(config.sandboxing.masked):
        yield Place(f"sandboxing.masked[{index}]", path)
    for path in protected:
        yield Place("a file that Sayso is configured by", path)
    yield from own_files()


def _out_of_reach(kept: Iterable[Place], writable: Sequence[Place]) -> None:
    for place in kept:
        for outer in writable:
            if any(_within(spot, outer.real) for spot in place.way):
                raise ConfigError(
                    f"{place} lies in {outer}, or is found through a link there: commands can write there, "
                    "so they could rename a directory on the way and put another in its place; "
                    "move it, or choose another workspace"
                )


def _ways_out_of_reach(
    config: Config, workspaces: Iterable[Place], root: Place, writable: Sequence[Place]
) -> None:
    """Refuse links within reach of commands on the way to what a sandbox is given."""
    readable = (
        Place(f"sandboxing.readable[{index}]", path) for index, path in enumerate(config.sandboxing.readable)
    )
    for place in (root, *workspaces, *readable):
        links = place.way[:-1]
        for outer in writable if links else ():
            if any(_within(link, outer.real) for link in links):
                raise ConfigError(
                    f"{place} is found through a link in {outer}, which commands could lead elsewhere; "
                    "write the directory itself"
                )


def _way(path: str) -> Iterator[str]:
    at, left, links = "/", path.split("/")[::-1], 0
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        spot = dirname(at) if name == ".." else f"{at.rstrip('/')}/{name}"
        if name == ".." or links >= _MOST_LINKS or not Path(spot).is_symlink():
            at = spot
            continue
        yield spot
        target = os.readlink(spot)  # noqa: PTH115 - the text as it is
        links, at = links + 1, "/" if target.startswith("/") else at
        left += target.split("/")[::-1]
    yield at


def _within(path: str, directory: str) -> bool:
    return directory in ("/", path) or path.startswith(f"{directory}/")
