"""Tools that others bring: `plugins`."""

from __future__ import annotations

from pydantic import Field

from core.config.section import NonEmpty, Section
from core.config.tools import GroupSettings, ListEntry


class PluginSettings(Section):
    """`plugins.<id>`: the tools of a plugin or MCP server, and what it asks to be kept from chat groups.

    The id stands for its tools, and for those of the plugins it includes, in every tool list.
    """

    tools: tuple[ListEntry, ...] = ()
    includes: tuple[NonEmpty, ...] = ()
    groups: dict[str, dict[str, GroupSettings]] = Field(default_factory=dict)
