"""The tools, groups and profiles that Sayso knows, as data (text 002 §3, §5b)."""

from __future__ import annotations

from types import MappingProxyType

from core.config import ProfileName

GROUP_PREFIX = "group:"
PLUGINS_GROUP = "group:plugins"

_FS = frozenset({"read", "write", "edit", "apply_patch"})
_RUNTIME = frozenset({"exec", "process"})
_WEB = frozenset({"web_search", "web_fetch"})
_MEMORY = frozenset({"memory_search", "memory_get"})
_SESSIONS = frozenset(
    {
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "sessions_spawn",
        "sessions_yield",
        "subagents",
        "session_status",
    }
)
_UI = frozenset({"browser", "canvas"})
_MESSAGING = frozenset({"message"})
_AUTOMATION = frozenset({"cron", "gateway"})
_NODES = frozenset({"nodes"})
_AGENTS = frozenset({"agents_list"})
_MEDIA = frozenset({"image", "image_generate", "tts"})

# The tools an agent product brings beside files and commands.
_PRODUCT = _WEB | _MEMORY | _SESSIONS | _UI | _MESSAGING | _AUTOMATION | _NODES | _AGENTS | _MEDIA

GROUPS = MappingProxyType(
    {
        "group:fs": _FS,
        "group:runtime": _RUNTIME,
        "group:web": _WEB,
        "group:memory": _MEMORY,
        "group:sessions": _SESSIONS,
        "group:ui": _UI,
        "group:messaging": _MESSAGING,
        "group:automation": _AUTOMATION,
        "group:nodes": _NODES,
        "group:agents": _AGENTS,
        "group:media": _MEDIA,
        "group:openclaw": _PRODUCT,
        "group:clawdbot": _PRODUCT,
    }
)

OWNER_ONLY = frozenset({"whatsapp_login", "cron", "gateway", "nodes"})

TOOLS = _FS | _RUNTIME | _PRODUCT | OWNER_ONLY

# In no profile, and no `*` reaches them: they count only where their name or their group is written.
NAMED_ONLY = frozenset({"browser", "canvas", "gateway", "nodes", "agents_list", "tts"})

CODING = (_FS | _RUNTIME | _WEB | _MEMORY | _SESSIONS | {"cron", "image", "image_generate"}) - NAMED_ONLY
MESSAGING = _MESSAGING | {"sessions_list", "sessions_history", "sessions_send", "session_status"}
MINIMAL = frozenset({"session_status"})

# `full` is not listed: it is every registered tool but NAMED_ONLY.
PROFILES = MappingProxyType(
    {
        ProfileName.CODING: CODING,
        ProfileName.MESSAGING: MESSAGING,
        ProfileName.MINIMAL: MINIMAL,
    }
)

SUBAGENT_DENY_ALWAYS = frozenset(
    {
        "gateway",
        "agents_list",
        "whatsapp_login",
        "session_status",
        "cron",
        "memory_search",
        "memory_get",
        "sessions_send",
    }
)
SUBAGENT_DENY_LEAF = frozenset({"subagents", "sessions_list", "sessions_history", "sessions_spawn"})

CHANNELS = frozenset(
    {
        "discord",
        "telegram",
        "slack",
        "whatsapp",
        "signal",
        "imessage",
        "matrix",
        "msteams",
        "googlechat",
        "web",
        "terminal",
    }
)

SANDBOX_ALLOW = (
    _FS
    | _RUNTIME
    | {
        "image",
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "sessions_spawn",
        "sessions_yield",
        "subagents",
        "session_status",
    }
)
SANDBOX_DENY = frozenset({"browser", "canvas", "nodes", "cron", "gateway"}) | CHANNELS

READ_ONLY_DENY = frozenset({"write", "edit", "apply_patch"})
