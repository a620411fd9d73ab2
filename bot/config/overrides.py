"""What flags and environment variables change when the daemon starts (text 002 §16); flags win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.config.tree import Node, Origin, Problems, find, from_python, put
from core.config import AskMode, ExecSecurity, ProfileName
from core.policy.universe import Kind, Universe

MAIN_AGENT = "main"
_HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Overrides:
    """The flags of the daemon's start; None and empty change nothing."""

    exec_security: str | None = None
    exec_ask: str | None = None
    no_sandbox: bool = False
    allow_tools: tuple[str, ...] = ()
    deny_tools: tuple[str, ...] = ()
    profile: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    """A value and the flag or variable it came from."""

    value: str
    name: str

    @property
    def origin(self) -> Origin:
        return Origin(self.name, start=True)


def apply_overrides(root: Node, flags: Overrides, env: Mapping[str, str], problems: Problems) -> Node:
    """Return the tree with flags and variables put over it; wrong values name the flag or variable."""
    security = _chosen(flags.exec_security, "--exec-security", env, "SAYSO_EXEC_SECURITY")
    ask = _chosen(flags.exec_ask, "--exec-ask", env, "SAYSO_EXEC_ASK")
    profile = _chosen(flags.profile, "--profile", env, "SAYSO_TOOL_PROFILE")
    root = _exec(root, "security", _checked(security, ExecSecurity, problems))
    root = _exec(root, "ask", _checked(ask, AskMode, problems))
    root = _profile(root, _checked(profile, ProfileName, problems))
    root = _sandbox(root, _sandbox_off(flags, env, problems))
    root = _tools(root, "alsoAllow", flags.allow_tools, "--allow-tool", problems)
    root = _tools(root, "deny", flags.deny_tools, "--deny-tool", problems)
    return _port(root, flags.port, problems)


def _chosen(flag: str | None, flag_name: str, env: Mapping[str, str], variable: str) -> _Given | None:
    if flag is not None:
        return _Given(flag, flag_name)
    value = env.get(variable, "").strip()
    return _Given(value, variable) if value else None


def _checked(given: _Given | None, choices: type[StrEnum], problems: Problems) -> _Given | None:
    known = [choice.value for choice in choices]
    if given is None or given.value in known:
        return given
    problems.add(given.origin, "", f"{given.value!r} is not one of {', '.join(known)}")
    return None


def _exec(root: Node, key: str, given: _Given | None) -> Node:
    if given is None:
        return root
    leaf = Node(given.value, given.origin)
    root = put(root, ("tools", "exec", key), leaf)
    return _each_agent(root, ("exec", key), leaf)


def _each_agent(root: Node, parts: tuple[str, ...], leaf: Node) -> Node:
    """Replace a setting of every agent that has one of its own, so that none escapes the override."""
    agents = root.child("agents")
    for agent_id, agent in ((agents.mapping or {}) if agents else {}).items():
        own: Node | None = agent
        for part in parts:
            own = own.child(part) if own else None
        if own is not None and agent_id != "defaults":
            root = put(root, ("agents", agent_id, *parts), leaf)
    return root


def _profile(root: Node, given: _Given | None) -> Node:
    if given is None:
        return root
    return put(root, ("agents", MAIN_AGENT, "tools", "profile"), Node(given.value, given.origin))


def _sandbox_off(flags: Overrides, env: Mapping[str, str], problems: Problems) -> _Given | None:
    if flags.no_sandbox:
        return _Given("off", "--no-sandbox")
    value = env.get("SAYSO_SANDBOX", "").strip()
    if value not in ("", "off"):
        problems.add(Origin("SAYSO_SANDBOX"), "", f"{value!r} is no value it knows; only off counts")
    return _Given("off", "SAYSO_SANDBOX") if value == "off" else None


def _sandbox(root: Node, given: _Given | None) -> Node:
    if given is None:
        return root
    root = put(root, ("sandboxing", "mode"), Node("off", given.origin))
    root = _each_agent(root, ("sandbox", "mode"), Node("off", given.origin))
    return _each_agent(root, ("sandbox", "enabled"), Node(value=False, origin=given.origin))


def _tools(root: Node, key: str, names: tuple[str, ...], flag: str, problems: Problems) -> Node:
    origin = Origin(flag, start=True)
    known = _registered(root)
    for name in names:
        if known.read(name).kind is Kind.UNKNOWN:
            problems.add(origin, "", f"{name!r} is no known tool or group")
    if not names:
        return root
    tools = root.child("tools")
    own = tools.child(key) if tools else None
    added = tuple(from_python(name, origin) for name in names)
    if own is not None and own.items is None:
        return root  # not a list; the models say so
    return put(
        root,
        ("tools", key),
        Node((*(own.items or ()), *added) if own else added, own.origin if own else origin),
    )


def _registered(root: Node) -> Universe:
    """Read what the files register; what is wrong with it is told elsewhere."""
    plugins = find(root, ("plugins",))
    own = {
        name: _texts(find(plugin, ("tools",)))
        for name, plugin in ((plugins and plugins.mapping) or {}).items()
    }
    return Universe.of(own, _texts(find(root, ("tools", "registered"))))


def _texts(node: Node | None) -> tuple[str, ...]:
    return tuple(item.value for item in (node and node.items) or () if isinstance(item.value, str))


def _port(root: Node, port: int | None, problems: Problems) -> Node:
    if port is None:
        return root
    origin = Origin("--port", start=True)
    if not 0 <= port <= _HIGHEST_PORT:
        problems.add(origin, "", f"{port} is no port; give 0 to {_HIGHEST_PORT}")
        return root
    return put(root, ("channels", "web", "port"), Node(port, origin))
