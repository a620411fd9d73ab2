"""Exec settings from beside the configuration: they count where they are stricter, and loosen nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

DOCUMENT: Final = "exec-approvals.json"
EVERY_AGENT: Final = "*"
REQUEST: Final = "the request"


@dataclass(frozen=True, slots=True)
class Stated:
    """The value of a setting, and where it is stated."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Tightening:
    """What is stated about one command beside the configuration; None where nothing is."""

    security: Stated | None = None
    ask: Stated | None = None
    ask_fallback: Stated | None = None
    auto_allow_skills: Stated | None = None


NOTHING_TIGHTER: Final = Tightening()


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The settings of one section of the document, as it has them."""

    security: str | None = None
    ask: str | None = None
    ask_fallback: str | None = None
    auto_allow_skills: bool | None = None


@dataclass(frozen=True, slots=True)
class DocumentSettings:
    """The settings of the document: for all, and for single agents (`*`: for each that has no own one)."""

    defaults: AgentLimits = AgentLimits()
    agents: Mapping[str, AgentLimits] = field(default_factory=dict)

    def for_agent(self, agent: str) -> Tightening:
        """Tell what the document states about an agent."""
        sections = [(f"{DOCUMENT} agents.{name}", self.agents.get(name)) for name in (agent, EVERY_AGENT)]
        sections.append((f"{DOCUMENT} defaults", self.defaults))

        def stated(name: str, key: str) -> Stated | None:
            for where, section in sections:
                value = getattr(section, name, None)
                if value is not None:
                    return Stated(str(value).lower(), f"{where}.{key}")
            return None

        return Tightening(
            stated("security", "security"),
            stated("ask", "ask"),
            stated("ask_fallback", "askFallback"),
            stated("auto_allow_skills", "autoAllowSkills"),
        )
