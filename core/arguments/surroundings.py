"""What is true where the arguments of a call are judged: directories, and rules with their sources."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.arguments.web import WebRules, web_rules_of
from core.config import Config, PathRules
from core.policy.scene import Scene, universe_of
from core.policy.toolset import ToolIdentity
from core.policy.universe import Universe


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """One entry of a list, as the operator wrote it, and the configuration path of it."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class FileRules:
    """`tools.read` or `tools.write`: deny wins, an allow list that is not empty denies all else."""

    source: str
    allow: tuple[WrittenRule, ...] = ()
    deny: tuple[WrittenRule, ...] = ()
    max_size_bytes: int = PathRules().max_size_bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where file tools work and by which rules.

    `cwd`, `workspace` and `home` (what `~` means) are absolute. `confined_by` is the configuration path of
    what keeps file tools in the workspace, or None. `protected` are Sayso's own state and configuration.
    `universe` tells what names and groups in `tools.ask.tools` stand for.
    """

    cwd: str
    workspace: str
    home: str = ""
    confined_by: str | None = None
    protected: tuple[str, ...] = ()
    read: FileRules = FileRules("tools.read")
    write: FileRules = FileRules("tools.write")
    ask_tools: tuple[WrittenRule, ...] = ()
    ask_paths: tuple[WrittenRule, ...] = ()
    web: WebRules = field(default_factory=WebRules)
    universe: Universe = field(default_factory=Universe.of)

    @property
    def confined(self) -> bool:
        """Whether file tools must stay in the workspace."""
        return self.confined_by is not None

    @property
    def rules_paths(self) -> bool:
        """Whether an operator's rule says where files may be read or written."""
        lists = (self.read.allow, self.read.deny, self.write.allow, self.write.deny, self.ask_paths)
        return self.confined or any(lists)


def surroundings_of(
    config: Config,
    agent: str,
    *,
    workspace: str,
    home: str,
    protected: tuple[str, ...],
    cwd: str | None = None,
    universe: Universe | None = None,
) -> Surroundings:
    """Read what holds for an agent; without `cwd` the workspace, without `universe` the configured tools."""
    return Surroundings(
        cwd=cwd or workspace,
        workspace=workspace,
        home=home,
        confined_by=Scene(config, ToolIdentity(agent)).confined_by,
        protected=protected,
        read=_rules(config.tools.read, "tools.read"),
        write=_rules(config.tools.write, "tools.write"),
        ask_tools=_written(config.tools.ask.tools, "tools.ask.tools"),
        ask_paths=_written(config.tools.ask.paths, "tools.ask.paths"),
        web=web_rules_of(config, agent),
        universe=universe or universe_of(config),
    )


def _rules(rules: PathRules, path: str) -> FileRules:
    return FileRules(
        path,
        _written(rules.allow, f"{path}.allow"),
        _written(rules.deny, f"{path}.deny"),
        rules.max_size_bytes,
    )


def _written(texts: tuple[str, ...], path: str) -> tuple[WrittenRule, ...]:
    return tuple(WrittenRule(text, f"{path}[{index}]") for index, text in enumerate(texts))
