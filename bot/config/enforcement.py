"""What is read but not enforced yet, and what else an operator should know: told at start, never silently."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from bot.config.elevation import elevation_doubts, sender_lists
from bot.config.quorums import people_doubts, quorum_doubts
from bot.config.search_path import search_path_doubts
from core.arguments import path_globs
from core.config import Agents, Config, ToolSettings, UnconfinedHost
from core.elevated import senders
from core.execsec.skills import can_run_anything
from core.policy.checks import never_counting, sections_without_tools, unknown_channels, without_built_ins

# Path ▶ what does not happen yet. `*` stands for any id; a value that equals the default is not mentioned.
NOT_ENFORCED_YET = MappingProxyType(
    {
        "tools.exec.node": "there are no nodes, so host: node refuses every run",
        "agents.*.sandbox.backend": "only bubblewrap is built, so every sandboxed run is refused",
        "agents.*.sandbox.docker": "there are no containers",
        "sandboxing.backend": "only bubblewrap is built, so every sandboxed run is refused",
        "sandboxing.docker": "there are no containers",
        "channels.discord": "nothing is sent there",
        "channels.slack": "nothing is sent there",
    }
)


def warnings_of(config: Config) -> tuple[str, ...]:
    """Name what is set and has no effect yet, and list entries that name nothing known."""
    texts = [
        f"{path} is read but not enforced yet: {meaning}"
        for pattern, meaning in NOT_ENFORCED_YET.items()
        for path in _set_paths(config, pattern.split("."), "")
    ]
    policy = (*never_counting(config), *without_built_ins(config), *unknown_channels(config))
    policy = (*policy, *sections_without_tools(config))
    about_people = (*_faulty_senders(config), *people_doubts(config), *quorum_doubts(config))
    people = (*about_people, *elevation_doubts(config))
    listed = (*_idle_skill_bins(config), *search_path_doubts(config), *_faulty_globs(config))
    listed = (*listed, *_host_doubts(config))
    return (*texts, *policy, *listed, *people, *_idle_group(config))


def _idle_group(config: Config) -> Iterator[str]:
    socket = config.daemon.socket
    if socket.group and not socket.shared_with:
        yield f"daemon.socket.group: {socket.group!r} is shut out by daemon.socket.mode: leave the mode out"


def _host_doubts(config: Config) -> Iterator[str]:
    user = config.exec.host_user
    if user is not None and os.geteuid() != 0:
        yield "tools.exec.hostUser counts for a daemon that runs as root; this one is none"
    elif user is not None and user != config.sandboxing.user:
        yield (
            f"tools.exec.hostUser is {user} and sandboxing.user is {config.sandboxing.user}: neither can "
            "use a workspace that Sayso makes for the other; name one account, or set agents.<id>.workspace"
        )
    if config.exec.unconfined_host is UnconfinedHost.ACCEPT:
        yield (
            "tools.exec.unconfinedHost is accept: where runs on the host cannot be held from Sayso's own "
            "state, security: full with ask: off, and elevated full, let an agent read the operator's token"
        )


def _idle_skill_bins(config: Config) -> Iterator[str]:
    for name, skill in config.skills.items():
        for index, text in enumerate(skill.bins):
            if can_run_anything(text):
                why = "it can run other programs, so it needs an allowlist entry with its arguments"
                yield f"skills.{name}.bins[{index}]: {text!r} never runs by autoAllowSkills: {why}"


def _faulty_globs(config: Config) -> Iterator[str]:
    for path, patterns in _glob_lists(config.tools):
        for index, text in enumerate(patterns):
            why = path_globs.fault(text)
            if why:
                effect = "matches nothing" if path.endswith("allow") else "counts for every path"
                yield f"{path}[{index}]: {text!r} {effect}: {why}"
            elif set(text) & set("[]{}"):
                yield f"{path}[{index}]: in {text!r} the brackets stand for themselves; only * and ? are wild"


def _glob_lists(tools: ToolSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "tools.read.allow", tools.read.allow
    yield "tools.read.deny", tools.read.deny
    yield "tools.write.allow", tools.write.allow
    yield "tools.write.deny", tools.write.deny
    yield "tools.ask.paths", tools.ask.paths


def _set_paths(value: Any, parts: list[str], path: str) -> Iterator[str]:  # noqa: ANN401 - models and mappings
    if not parts:
        yield path
        return
    head, *rest = parts
    for name, below, changed in _children(value, head):
        if changed or rest:
            yield from _set_paths(below, rest, f"{path}.{name}" if path else name)


def _children(value: Any, head: str) -> Iterator[tuple[str, Any, bool]]:  # noqa: ANN401 - as above
    if isinstance(value, dict) and head == "*":
        yield from ((key, below, True) for key, below in value.items())
    elif isinstance(value, BaseModel):
        if isinstance(value, Agents) and head == "*":
            yield from _children(value.by_id, head)
        for name, field in type(value).model_fields.items():
            if (field.alias or name) == head:
                below = getattr(value, name)
                yield head, below, below != field.get_default(call_default_factory=True)


def _faulty_senders(config: Config) -> Iterator[str]:
    for path, patterns in sender_lists(config):
        for index, text in enumerate(patterns):
            try:
                senders.parse(text)
            except ValueError as fault:
                yield f"{path}[{index}] names nobody: {fault}"
