"""What is true of this machine, found out once at start."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.config import Config
from core.errors import ConfigError
from core.judge import Site
from core.sandbox.workspace import default_root


def survey(config: Config, home: Path, protected: Sequence[str]) -> Site:
    """Find the homes to mask, the account that runs commands, and where workspaces lie.

    Raises ConfigError for a workspace that holds, or lies in, what no command may touch.
    """
    is_root = os.geteuid() == 0
    state_dir = os.path.realpath(home)
    own_home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    homes = {"/home", "/root", own_home} - {"/", "/nonexistent"}
    root = config.sandboxing.workspace_root or default_root(state_dir, is_root=is_root)
    workspace_root = os.path.realpath(Path(root).expanduser())
    _apart(state_dir, {"sandboxing.workspaceRoot": workspace_root, **_workspaces(config)})
    return Site(
        state_dir=state_dir,
        workspace_root=workspace_root,
        homes=tuple(sorted(path for path in homes if Path(path).is_dir())),
        home=own_home,
        protected=tuple(protected),
        account=config.sandboxing.user if is_root else None,
    )


def _workspaces(config: Config) -> dict[str, str]:
    own = {f"agents.{name}.workspace": agent.workspace for name, agent in config.agents.by_id.items()}
    return {key: os.path.realpath(path) for key, path in own.items() if path is not None}


def _apart(state_dir: str, workspaces: Mapping[str, str]) -> None:
    for key, path in workspaces.items():
        if path == state_dir or path.startswith(f"{state_dir}/") or state_dir.startswith(f"{path}/"):
            raise ConfigError(
                f"{key}: {path} and Sayso's state in {state_dir} lie in one another, and no command may "
                "touch that state; choose a place apart from it"
            )
