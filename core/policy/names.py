"""Tool names as agents and operators write them, brought to one spelling before anything is compared."""

from __future__ import annotations

import re
from types import MappingProxyType

from core.policy.catalog import GROUP_PREFIX, GROUPS, PLUGINS_GROUP, TOOLS

MCP_PREFIX = "mcp__"

# Keys are trimmed and casefolded. Calls and lists go by one table: `deny: [Bash]` means what it says.
_SPELLINGS = {
    "bash": "exec",
    "apply-patch": "apply_patch",
    "applypatch": "apply_patch",
    "web-fetch": "web_fetch",
    "web-search": "web_search",
}

# What looks at files is `read`, so that its path rules hold. PowerShell is no `exec`: its commands are not
# judged by a POSIX shell's grammar. Tools without an equal here (TodoWrite) are unknown until registered.
_CLAUDE_CODE = {
    "bash": "exec",
    "bashoutput": "process",
    "killshell": "process",
    "killbash": "process",
    "taskoutput": "process",
    "taskstop": "process",
    "glob": "read",
    "grep": "read",
    "ls": "read",
    "notebookread": "read",
    "multiedit": "edit",
    "notebookedit": "edit",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "task": "sessions_spawn",
    "agent": "sessions_spawn",
}

# What write_stdin types into a running shell are commands: it is judged as exec, which refuses its arguments.
_CODEX = {
    "bash": "exec",
    "shell": "exec",
    "local_shell": "exec",
    "local_shell_call": "exec",
    "shell_command": "exec",
    "container.exec": "exec",
    "exec_command": "exec",
    "unified_exec": "exec",
    "write_stdin": "exec",
    "read_file": "read",
    "list_dir": "read",
    "grep_files": "read",
    "view_image": "read",
    "apply_patch_call": "apply_patch",
    "spawn_agent": "sessions_spawn",
}

CLIENT_ALIASES = MappingProxyType(
    {
        "claude-code": MappingProxyType(_CLAUDE_CODE),
        "codex": MappingProxyType(_CODEX),
    }
)
ALIASES = MappingProxyType(_SPELLINGS | _CLAUDE_CODE | _CODEX)

_REGISTRABLE = re.compile(r"[a-z0-9_][a-z0-9_.:/@+-]{0,127}")
_PLUGIN_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def normalise(name: str) -> str:
    """Trim, casefold and resolve aliases; what is unknown comes back casefolded.

    The tools of MCP servers (`mcp__server__tool`) keep their whole name, whatever the server calls them.
    """
    folded = name.strip().casefold()
    return ALIASES.get(folded, folded)


def mcp_server(tool: str) -> str | None:
    """Return `mcp__server` for the normalised name of an MCP tool, or None for any other."""
    server, separator, rest = tool.removeprefix(MCP_PREFIX).partition("__")
    named = tool.startswith(MCP_PREFIX) and server and separator and rest
    return f"{MCP_PREFIX}{server}" if named else None


def tool_fault(name: str) -> str | None:
    """Say why a name cannot be registered as a tool, or None where it can."""
    tool = normalise(name)
    if tool in TOOLS:
        same = "" if tool == name else f" ({tool})"
        return f"is a built-in tool{same} and cannot be registered again"
    if tool.startswith(GROUP_PREFIX) or not _REGISTRABLE.fullmatch(tool):
        return "is no tool name; use letters, digits and _ . : / @ + -, at most 128, and begin with a letter"
    return None


def plugin_fault(plugin: str) -> str | None:
    """Say why a text cannot be the id of a plugin, or None where it can."""
    if not _PLUGIN_ID.fullmatch(plugin):
        return "is no plugin id; use lower case letters, digits and _ . -, at most 64"
    if normalise(plugin) in TOOLS or f"{GROUP_PREFIX}{plugin}" in (*GROUPS, PLUGINS_GROUP):
        return "is the name of a built-in tool or group; give the plugin another id"
    return None
