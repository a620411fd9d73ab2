"""The terminal that a process belongs to, as the kernel tells it, and what was proven there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Terminal:
    """A user's session on a terminal, the same one only as long as the process that leads it lives.

    `tty` and `session` are numbers that the kernel gives out again, `leader_started` (clock ticks since the
    machine's start) tells two sessions of one number apart.
    """

    uid: int
    tty: int
    session: int
    leader_started: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Proof:
    """That the passphrase was given, and when: by the wall clock (epoch ms) and the steady one (seconds).

    `epoch` is how often everything had been forgotten by then.
    """

    epoch: int
    given_at: int
    given_steady: float
    lasts_ms: int


def _still() -> bool:
    return True


@dataclass(slots=True, eq=False)
class Seat:
    """Where one connection of the operator comes from; `proof` counts for this connection alone.

    `still` tells whether the process that connected belongs to that terminal yet.
    """

    terminal: Terminal | None
    proof: Proof | None = None
    still: Callable[[], bool] = field(default=_still, repr=False)

    @property
    def here(self) -> Terminal | None:
        """The terminal, looked at anew; None where the process left it or has ended."""
        return self.terminal if self.terminal is not None and self.still() else None
