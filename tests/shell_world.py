"""A small file system for judging commands without looking at the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.resolvers.filesystem import FilesystemResolver
from core.config import Config
from core.execsec.decide import ExecJudgement, decide
from core.execsec.policy import ExecPolicy, effective
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts, Directory, Executable, FileIdentity, Placement
from core.shell.inspect import inspect
from core.shell.parse import Parse, parse

HOME = "/home/agent"
STATE = "/home/agent/.sayso"


@dataclass
class World:
    """A Resolver: every bare name is in /usr/bin but those `missing`; `links` give real paths."""

    missing: set[str] = field(default_factory=lambda: {"nonesuch"})
    links: dict[str, str] = field(default_factory=lambda: {"/usr/bin/python3": "/usr/bin/python3.11"})
    scripts: set[str] = field(default_factory=lambda: {"/usr/bin/zgrep"})
    files: set[str] = field(default_factory=lambda: {"/srv/run.sh", "/srv/tools/rg", "/tmp/cut"})
    directories: set[str] = field(default_factory=lambda: {"/", "/srv", "/srv/tools", "/tmp", STATE})
    inodes: dict[str, int] = field(default_factory=dict)  # of directories; 1 for every other

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        if name in self.missing:
            return None
        if "/" not in name:
            place = f"{path[0]}/{name}" if path else ""
        else:
            place = name if name.startswith("/") else f"{cwd.rstrip('/')}/{name.removeprefix('./')}"
        system = place.startswith("/usr/bin/")
        if not system and place not in self.files:
            return None
        real = self.links.get(place, place)
        identity = FileIdentity(1, 1, 1, 1, 1, None if system else "a" * 64)
        return Executable(name, place, real, identity, trusted=system, script=place in self.scripts)

    def directory(self, path: str) -> Directory | None:
        return Directory(path, 1, self.inodes.get(path, 1)) if path in self.directories else None

    def real_directory(self, path: str) -> str | None:
        return path if path in self.directories else None


class Machine(FilesystemResolver):
    """Real files, directories and links; programs are as in the small world, whatever is installed."""

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        return World().find(name, path=path, cwd=cwd)


def look(
    command: str | Sequence[str], *, cwd: str = "/srv", world: World | None = None, parse: Parse = parse
) -> CommandFacts:
    """Inspect a line or an argv in a small world."""
    text = CommandText(line=command) if isinstance(command, str) else CommandText(argv=tuple(command))
    return inspect(text, cwd=cwd, path=("/usr/bin",), resolver=world or World(), parse=parse)


def policy(
    placement: Placement = Placement.SANDBOX, agent: dict[str, Any] | None = None, **settings: Any
) -> ExecPolicy:
    """Make a policy from keys of `tools.exec`; allowlist mode unless told otherwise."""
    data = {
        "tools": {"exec": {"security": "allowlist", **settings}},
        "agents": {"byId": {"main": {"exec": agent or {}}}},
    }
    return effective(Config.model_validate(data), "main", placement, home=HOME, protected_paths=(STATE,))


def judge(
    command: str | Sequence[str] | CommandFacts,
    *patterns: str | AllowlistEntry,
    seen_before: bool = False,
    env: Sequence[tuple[str, str]] = (),
    placement: Placement = Placement.SANDBOX,
    under: ExecPolicy | None = None,
    **settings: Any,
) -> ExecJudgement:
    """Judge a command; patterns are allowlist entries in this placement."""
    facts = command if isinstance(command, CommandFacts) else look(command)
    entries = [
        pattern
        if isinstance(pattern, AllowlistEntry)
        else AllowlistEntry(pattern, placement=placement, source="test")
        for pattern in patterns
    ]
    chosen = under or policy(placement, **settings)
    return decide(facts, chosen, entries, placement, env=env, seen_before=seen_before)


def effect(
    command: str | Sequence[str] | CommandFacts, *patterns: str | AllowlistEntry, **options: Any
) -> str:
    """Judge and give only the effect's name."""
    return str(judge(command, *patterns, **options).decision.effect)
