"""What the one who asked gets back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How it stands with what was asked."""

    PENDING = "pending"
    ALLOWED = "allowed"
    FINISHED = "finished"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one call; `to_json` is the shape that other programs rely on.

    `decision` is an `explain` row with `where` added (file and line of the rule). `reason` is the one
    sentence for people. `truncated` counts bytes left out of `stdout` and `stderr`. `held` names what a run
    on the host was kept from, `notes` are sentences about how it went.
    """

    status: Status
    reason: str
    request_id: str | None = None
    decision: dict[str, Any] | None = None
    approval: dict[str, Any] | None = None
    placement: str | None = None
    sandbox: str | None = None
    cwd: str | None = None
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    truncated_stdout: int = 0
    truncated_stderr: int = 0
    duration_ms: int | None = None
    timed_out: bool = False
    held: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give the outcome object of the socket and of `--json`."""
        return {
            "status": self.status.value,
            "reason": self.reason,
            "id": self.request_id,
            "exitCode": self.exit_code,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "truncated": {"stdout": self.truncated_stdout, "stderr": self.truncated_stderr},
            "timedOut": self.timed_out,
            "approval": self.approval,
            "decision": self.decision,
            "placement": self.placement,
            "sandbox": self.sandbox,
            "cwd": self.cwd,
            "durationMs": self.duration_ms,
            "held": [*self.held],
            "notes": [*self.notes],
        }
