"""The words that settings choose from."""

from __future__ import annotations

from enum import StrEnum


class ExecHost(StrEnum):
    """Where exec runs; `gateway` means this host."""

    SANDBOX = "sandbox"
    GATEWAY = "gateway"
    NODE = "node"


class ExecSecurity(StrEnum):
    """What may run at all."""

    DENY = "deny"
    ALLOWLIST = "allowlist"
    FULL = "full"


class AskMode(StrEnum):
    """When people are asked."""

    OFF = "off"
    ON_MISS = "on-miss"
    ALWAYS = "always"


class AskFallback(StrEnum):
    """What a question nobody answered in time turns into."""

    DENY = "deny"
    ALLOWLIST = "allowlist"


class Unanalysable(StrEnum):
    """What becomes of a command line that cannot be analysed."""

    DENY = "deny"
    ASK = "ask"


class UnconfinedHost(StrEnum):
    """What `security: full` and elevated `full` mean for a run on the host that nothing holds."""

    ASK = "ask"
    ACCEPT = "accept"


class SandboxMode(StrEnum):
    """Which sessions run in a sandbox."""

    OFF = "off"
    NON_MAIN = "non-main"
    ALL = "all"


class SandboxBackend(StrEnum):
    """How the sandbox is made; only bubblewrap is built yet."""

    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    SSH = "ssh"
    OPEN_SHELL = "openShell"


class Scope(StrEnum):
    """What shares one sandbox workspace."""

    SESSION = "session"
    AGENT = "agent"
    SHARED = "shared"


class ProfileName(StrEnum):
    """The built-in tool profiles."""

    FULL = "full"
    CODING = "coding"
    MESSAGING = "messaging"
    MINIMAL = "minimal"
