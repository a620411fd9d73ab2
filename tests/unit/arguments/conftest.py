"""A directory of real files and links, and calls judged in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.arguments.files import judge_files
from core.arguments.judgement import ArgumentJudgement
from core.arguments.surroundings import Surroundings, surroundings_of
from core.config import Config
from core.model.decision import strictest


@dataclass
class Yard:
    """`root` holds `work` (the workspace), `home`, `state` (Sayso's own) and whatever a test puts there."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    def file(self, name: str, content: str = "x") -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return str(path)

    def link(self, name: str, target: str) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target if target.startswith((".", "/")) else self.root / target)
        return str(path)

    def around(self, config: dict[str, Any] | None = None, **fields: Any) -> Surroundings:
        known = {"workspace": str(self.work), "home": str(self.root / "home"), "cwd": str(self.work)}
        known["protected"] = (str(self.root / "state"),)
        return surroundings_of(Config.model_validate(config or {}), "main", **(known | fields))

    def judge(
        self, tool: str, args: dict[str, Any], tools: dict[str, Any] | None = None, **fields: Any
    ) -> ArgumentJudgement:
        return judge_files(tool, args, self.around({"tools": tools or {}}, **fields), FilesystemResolver())

    def rule(
        self, tool: str, args: dict[str, Any], tools: dict[str, Any] | None = None, **fields: Any
    ) -> str:
        """Return the rule that decides, `none` where nothing was said against it."""
        judgement = self.judge(tool, args, tools, **fields)
        return strictest(judgement.decisions).rule if judgement.decisions else "none"

    def read(self, path: str, **read: Any) -> str:
        """Return the rule that decides about reading a path under these keys of `tools.read`."""
        return self.rule("read", {"path": path}, {"read": read})


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    root = tmp_path.resolve()
    for name in ("work", "home", "state"):
        (root / name).mkdir()
    return Yard(root)


@pytest.fixture
def below(yard: Yard) -> Callable[[str], str]:
    """Make a name absolute in the yard."""
    return lambda name: f"{yard.root}/{name}"
