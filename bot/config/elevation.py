"""What of `tools.elevated` cannot work as written, or lets in more than it seems to."""

from __future__ import annotations

from collections.abc import Iterator

from core.config import Config


def elevation_doubts(config: Config) -> Iterator[str]:
    """Yield a sentence for each thing that an operator should know, with its path first."""
    general = config.tools.elevated
    default = config.agents.defaults.elevated_default
    if not general.enabled:
        for name, agent in config.agents.by_id.items():
            if agent.tools.elevated and agent.tools.elevated.enabled:
                path = f"agents.{name}.tools.elevated.enabled"
                yield f"{path} has no effect: tools.elevated.enabled is false, which ends it for all"
        if default != "off":
            yield f"agents.defaults.elevatedDefault: {default} has no effect: tools.elevated.enabled is false"
        return
    if not general.allow_from:
        yield "tools.elevated.allowFrom is empty: nobody may elevate, but for agents with a list of their own"
    if config.approvals.exec.required > 1:
        yield (
            "tools.elevated.enabled: one person in allowFrom can set full, and under full nobody is asked, "
            f"though approvals.exec.required is {config.approvals.exec.required}"
        )
