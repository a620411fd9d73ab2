"""Who may elevate the sessions of an agent, by the configuration (text 002 §14). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.config import Config
from core.elevated.senders import authorised, may_coincide, reaches
from core.model.principal import Sender


@dataclass(frozen=True, slots=True)
class Authority:
    """Whom an agent's `allowFrom` names; nobody where elevated mode is off for it.

    `source` is where `allowFrom` is written, or what turned elevated mode off.
    """

    enabled: bool
    allow_from: tuple[str, ...]
    inherit: bool
    source: str

    def admits(self, sender: Sender) -> bool:
        """Tell whether this sender may elevate."""
        return self.enabled and authorised(self.allow_from, sender)

    def reaches(self, channel: str, approvers: Sequence[str] = ()) -> bool:
        """Tell whether anybody who may elevate could answer in a channel, where `approvers` alone may."""
        theirs = [pattern for pattern in self.allow_from if reaches(pattern, channel)]
        if not self.enabled or not approvers:
            return self.enabled and bool(theirs)
        return any(may_coincide(pattern, approver) for pattern in theirs for approver in approvers)


def authority(config: Config, agent: str) -> Authority:
    """Read who may elevate an agent: its own list replaces the global one, and off is off for all."""
    general, own = config.tools.elevated, config.agent(agent).tools.elevated
    inherit = own.inherit if own and own.inherit is not None else general.inherit
    if not general.enabled:
        return Authority(enabled=False, allow_from=(), inherit=False, source="tools.elevated.enabled")
    if own and own.enabled is False:
        source = f"agents.{agent}.tools.elevated.enabled"
        return Authority(enabled=False, allow_from=(), inherit=False, source=source)
    if own and own.allow_from is not None:
        source = f"agents.{agent}.tools.elevated.allowFrom"
        return Authority(enabled=True, allow_from=own.allow_from, inherit=inherit, source=source)
    return Authority(
        enabled=True, allow_from=general.allow_from, inherit=inherit, source="tools.elevated.allowFrom"
    )


def trusted_anywhere(config: Config) -> tuple[str, ...]:
    """List whom any `allowFrom` names, for what can only make things stricter."""
    own = (agent.tools.elevated for agent in config.agents.by_id.values())
    lists = (config.tools.elevated.allow_from, *(each.allow_from or () for each in own if each))
    return tuple(dict.fromkeys(pattern for patterns in lists for pattern in patterns))
