"""What people see of a request: one value, rendered by each channel in its own way."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.request import State


@dataclass(frozen=True, slots=True)
class CardOutcome:
    """How it ended: a line for people, and head and tail of the output where it ran."""

    line: str
    exit_code: int | None = None
    duration_ms: int | None = None
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What nobody may overlook: a word in capitals, and what follows from it for whoever decides."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """Texts are already safe to show (core.display); times are epoch ms.

    `placement` reads "sandbox (bubblewrap)" or "HOST", with "by the agent's own program" where that runs it;
    `account` is the Unix account that it runs as, empty where nobody knows. `marks` come in the order of
    their weight.
    `always` says in words what Always would remember; where it is empty, `always_why` says why there is
    nothing to remember and the button is not offered. `always_any` says what Always would with any arguments,
    where that is offered beside it. `durations` (ms) are the times for which it can be
    allowed; `denies_always` tells of "deny always". `decided` is None while it waits, else who and what in
    words; `decided_at` is when. `progress` tells, where several people must say yes, how many have, and who
    said what; it is empty elsewhere.
    """

    request_id: str
    state: State
    agent: str
    session: str
    command: str
    cwd: str
    placement: str
    on_host: bool
    reason: str
    rule: str
    written: str
    env: tuple[tuple[str, str], ...]
    always: tuple[str, ...]
    always_why: str | None
    durations: tuple[int, ...]
    denies_always: bool
    created_at: int
    deadline: int
    decided: str | None = None
    decided_at: int | None = None
    outcome: CardOutcome | None = None
    progress: str = ""
    account: str = ""
    always_any: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def short_id(self) -> str:
        """The first eight characters of the id."""
        return self.request_id[:8]

    @property
    def place(self) -> str:
        """Where and as whom it runs: `in the sandbox (bubblewrap) as nobody`."""
        as_whom = f" as {self.account}" if self.account else ""
        return f"{'on' if self.on_host else 'in'} the {self.placement}{as_whom}"

    @property
    def because(self) -> str:
        """Why it asks, where no mark has said so already."""
        mark = next((mark.word for mark in self.marks if mark.text == self.reason), None)
        return f"see {mark} above" if mark else self.reason

    @property
    def waits(self) -> bool:
        """Whether buttons are offered."""
        return self.state is State.WAITING

    @property
    def offers_always(self) -> bool:
        """Whether Always can be pressed."""
        return self.waits and bool(self.always)
