"""One run in the sandbox of a daemon that is not root, laid out from a configuration as the daemon does it.

Started as root with a JSON object: it imports what it needs while that can be read, and becomes `uid`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from concurrent.futures import thread  # noqa: F401 - asyncio imports it late
from dataclasses import asdict
from encodings import idna  # noqa: F401 - as above
from pathlib import Path
from typing import Any

from adapters.runners.bubblewrap import BubblewrapRunner
from bot.site import settled, survey
from core.approvals.binding import bind
from core.config import Config, SandboxOverrides, Scope
from core.errors import SaysoError
from core.model.command import Placement
from core.model.plan import BoundCommand, RunOrder
from core.model.session import SessionKey
from core.sandbox.plan import plan_for
from core.sandbox.workspace import directory_for
from tests.integration.runners.kit import Files, Recorder


def order_for(given: dict[str, Any]) -> tuple[RunOrder, str]:
    """Lay out the run of an agent as the judge does, and tell where workspaces lie."""
    config = Config.model_validate(given["config"])
    site = survey(config, Path(given["home"]), ())
    config = settled(config)
    session = SessionKey.main(given["agent"])
    own = config.agent(given["agent"]).workspace
    plan = plan_for(
        config.sandboxing,
        SandboxOverrides(),
        config.exec,
        state_dir=site.state_dir,
        protected=site.protected,
        hidden=(*site.homes, *site.workspaces),
        workspace=own or directory_for(site.workspace_root, Scope.AGENT, session),
        account=site.account,
        timeout_s=30,
    )
    bound = BoundCommand(
        *(given["agent"], str(session), "test", plan.workspace, (), None, Placement.SANDBOX, plan, ())
    )
    return RunOrder("as-user", tuple(given["argv"]), bound, bind(bound)), site.workspace_root


async def run(given: dict[str, Any]) -> dict[str, Any]:
    """Run, or tell why not."""
    try:
        order, root = order_for(given)
        runner = BubblewrapRunner(Files(), Path(given["home"], "output"), root)
        return asdict(await runner.run(order, Recorder()))
    except SaysoError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    if os.geteuid() == 0 and wanted["uid"]:
        os.setgroups([])
        os.setgid(wanted["uid"])
        os.setuid(wanted["uid"])
    json.dump(asyncio.run(run(wanted)), sys.stdout)
