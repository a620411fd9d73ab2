"""What is true of this machine, found out once at start."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from pathlib import Path

from core.config import Config
from core.judge import Site
from core.sandbox.workspace import default_root


def survey(config: Config, home: Path, protected: Sequence[str]) -> Site:
    """Find the homes to mask, the account that runs commands, and where workspaces lie."""
    is_root = os.geteuid() == 0
    state_dir = os.path.realpath(home)
    own_home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    homes = {"/home", "/root", own_home} - {"/", "/nonexistent"}
    root = config.sandboxing.workspace_root or default_root(state_dir, is_root=is_root)
    return Site(
        state_dir=state_dir,
        workspace_root=os.path.realpath(Path(root).expanduser()),
        homes=tuple(sorted(path for path in homes if Path(path).is_dir())),
        home=own_home,
        protected=tuple(protected),
        account=config.sandboxing.user if is_root else None,
    )
