"""Who is trusted by `allowFrom` and `approvers`: what cannot work as written, or lets in too much."""

from __future__ import annotations

from collections.abc import Iterator

from core.config import Config
from core.elevated.senders import parse, trusts_names


def senders_by_name(config: Config) -> Iterator[tuple[str, str]]:
    """Yield path and text of each sender pattern that rests on what a user may change."""
    for path, patterns in sender_lists(config):
        for index, text in enumerate(patterns):
            try:
                pattern = parse(text)
            except ValueError:
                continue  # it names nobody, which the load says
            if trusts_names(pattern):
                yield f"{path}[{index}]", text


def sender_lists(config: Config) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield path and patterns of every list of senders."""
    approvals = config.approvals.exec
    yield "approvals.exec.approvers", approvals.approvers
    for index, target in enumerate(approvals.targets):
        yield f"approvals.exec.targets[{index}].approvers", target.approvers
    yield "tools.elevated.allowFrom", config.tools.elevated.allow_from
    for name, agent in config.agents.by_id.items():
        if agent.tools.elevated is not None:
            yield f"agents.{name}.tools.elevated.allowFrom", agent.tools.elevated.allow_from or ()


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
    if config.approvals.exec.separation_of_duties:
        yield (
            "tools.elevated.enabled: a person in allowFrom can set full for the session of their own chat; "
            "then nobody is asked, though approvals.exec.separationOfDuties is true"
        )
    if config.approvals.exec.required > 1:
        yield (
            "tools.elevated.enabled: one person in allowFrom can set full, and under full nobody is asked, "
            f"though approvals.exec.required is {config.approvals.exec.required}"
        )
