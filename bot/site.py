"""What is true of this machine, found out once at start."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from adapters.runners.accounts import own_home
from bot.apart import refuse_entangled
from core.config import Config
from core.judge import Site
from core.sandbox.workspace import default_root


def survey(config: Config, home: Path, protected: Sequence[str]) -> Site:
    """Find the homes to mask, the account that runs commands, and where workspaces lie.

    Raises ConfigError for a workspace that holds, or lies in, what no command may touch or another works in.
    """
    is_root = os.geteuid() == 0
    state_dir = os.path.realpath(home)
    mine = os.path.realpath(own_home())
    homes = {"/home", "/root", mine} - {"/", "/nonexistent"}
    root = config.sandboxing.workspace_root or default_root(state_dir, is_root=is_root)
    refuse_entangled(config, str(home), root, protected)
    workspace_root = os.path.realpath(root)
    return Site(
        state_dir=state_dir,
        workspace_root=workspace_root,
        homes=tuple(sorted(path for path in homes if Path(path).is_dir())),
        home=mine,
        protected=tuple(protected),
        account=config.sandboxing.user if is_root else None,
        workspaces=tuple(dict.fromkeys((workspace_root, *_workspaces(settled(config)).values()))),
    )


def settled(config: Config) -> Config:
    """Resolve the links in the operator's own paths of sandboxes, once: those made later are not followed."""
    sandboxing = config.sandboxing
    real = {
        "workspace_root": sandboxing.workspace_root and os.path.realpath(sandboxing.workspace_root),
        "readable": tuple(map(os.path.realpath, sandboxing.readable)),
        "masked": tuple(map(os.path.realpath, sandboxing.masked)),
    }
    agents = dict(config.agents.by_id)
    for name, path in _workspaces(config).items():
        agents[name] = agents[name].model_copy(update={"workspace": os.path.realpath(path)})
    return config.model_copy(
        update={
            "sandboxing": sandboxing.model_copy(update=real),
            "agents": config.agents.model_copy(update={"by_id": agents}),
        }
    )


def _workspaces(config: Config) -> Mapping[str, str]:
    named = {name: agent.workspace for name, agent in config.agents.by_id.items()}
    return {name: path for name, path in named.items() if path is not None}
