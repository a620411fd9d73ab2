"""How runs are confined: `sandboxing` and what an agent may set differently."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.config.choices import SandboxBackend, SandboxMode, Scope
from core.config.section import AbsolutePath, AccountName, NonEmpty, Section
from core.model.plan import WorkspaceAccess


class DockerSettings(Section):
    """`sandboxing.docker`."""

    image: NonEmpty = "debian:stable-slim"
    memory_mb: int = Field(default=512, gt=0)
    cpus: float = Field(default=1.0, gt=0)
    network: Literal["none", "bridge", "host"] = "none"


class SandboxSettings(Section):
    """`sandboxing`: how runs are confined. `workspaceRoot` None means below the state directory."""

    mode: SandboxMode = SandboxMode.ALL
    backend: SandboxBackend = SandboxBackend.BUBBLEWRAP
    scope: Scope = Scope.SESSION
    workspace_access: WorkspaceAccess = WorkspaceAccess.RW
    workspace_root: AbsolutePath | None = None
    user: AccountName = "nobody"
    network: bool = False
    readable: tuple[AbsolutePath, ...] = ()
    masked: tuple[AbsolutePath, ...] = ()
    docker: DockerSettings = DockerSettings()


class SandboxOverrides(Section):
    """`agents.<id>.sandbox`; None keeps what `sandboxing` says."""

    enabled: bool | None = None
    mode: SandboxMode | None = None
    backend: SandboxBackend | None = None
    scope: Scope | None = None
    workspace_access: WorkspaceAccess | None = None
    docker: DockerSettings | None = None
