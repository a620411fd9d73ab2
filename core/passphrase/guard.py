"""Asks the operator on this machine for a passphrase, and remembers for a time where it was given.

What is remembered lies in memory alone: a daemon that starts again knows no terminal.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Protocol

from core.acts import Acts
from core.config import OperatorSettings
from core.errors import NotPermitted, PassphraseNeeded, RequestError
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.model.terminal import Proof, Seat, Terminal
from core.passphrase.guesses import ALARM_AFTER, Guesses
from core.passphrase.rules import fault_of
from core.ports import AuditStore, Clock

LONGEST_ONCE_MS = 15 * 60_000  # of a connection that asked by itself, where nothing is remembered

NEEDED = "the operator's passphrase is needed in this terminal; sayso operator unlock asks for it"
NO_TERMINAL = (
    "operator.local is passphrase, and the daemon sees no terminal that this process belongs to, so nothing "
    "it sends counts as the operator's; run it in a terminal, or decide on the page or in a chat"
)
NOT_USED = "operator.local is not passphrase, so none is asked for"


class Vault(Protocol):
    """Keeps the passphrase as a slow hash; all of it blocks, and raises StartError for a bad file."""

    def load(self) -> str | None:
        """Return the hash that is kept; None where none was set."""
        ...

    def matches(self, kept: str, passphrase: str) -> bool:
        """Tell whether a hash is of this passphrase."""
        ...

    def keep(self, passphrase: str) -> str:
        """Put a passphrase in place of the one before; returns its hash."""
        ...


class PassphraseGuard:
    """Decides whether a seat is the operator's; `kept` is the hash in force, None where none is asked for."""

    def __init__(
        self,
        vault: Vault,
        record: AuditStore,
        clock: Clock,
        settings: Callable[[], OperatorSettings],
        kept: str | None,
    ) -> None:
        self._vault = vault
        self._record = record
        self._clock = clock
        self._settings = settings
        self._kept = kept
        self._guesses = Guesses(clock)
        self._epoch = 0
        self._remembered: dict[Terminal, Proof] = {}
        self._one_at_a_time = asyncio.Lock()
        self._acts = Acts("passphrase")
        self.on_security: list[Callable[[AuditEvent], None]] = []

    async def close(self) -> None:
        """Wait for what is being checked."""
        await self._acts.close()

    @property
    def asks(self) -> bool:
        """Tell whether the operator needs a passphrase."""
        return self._settings().local == "passphrase"

    def standing(self, seat: Seat) -> dict[str, Any]:
        """Tell a seat what it still needs; nothing where no passphrase is asked for."""
        if not self.asks:
            return {}
        if (terminal := seat.here) is None:
            return {"passphrase": "no-terminal"}
        if until := self._remembered_until(terminal):
            return {"passphrase": "remembered", "rememberedUntil": until}
        return {"passphrase": "once" if self._was_given(seat) else "needed"}

    def admits(self, seat: Seat) -> bool:
        """Tell whether this seat is the operator's now."""
        if not self.asks:
            return True
        terminal = seat.here  # at each call: the process may have left it since it connected
        if terminal is None:
            return False
        return self._was_given(seat) or self._remembered_until(terminal) is not None

    def require(self, seat: Seat) -> None:
        """Raise PassphraseNeeded, or NotPermitted where no passphrase would help, for a seat that is not."""
        if not self.admits(seat):
            raise PassphraseNeeded(NEEDED) if seat.here else NotPermitted(NO_TERMINAL)

    async def unlock(self, seat: Seat, passphrase: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take the passphrase; a guess counts also where its sender hangs up before the answer."""
        return await self._acts.whole(self._unlocked(seat, passphrase, reviewer))

    async def change(
        self, seat: Seat, old: str | None, passphrase: str, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set the passphrase, given the one before; every terminal must give the new one."""
        return await self._acts.whole(self._changed(seat, old, passphrase, reviewer))

    async def forget(self, reviewer: Reviewer) -> dict[str, Any]:
        """Forget every terminal at once."""
        count = self.forget_all()
        if count:
            await self._record.append(self._event("operator.forgotten", reviewer, terminals=count))
        if not self.asks:
            text = f"operator.local is {self._settings().local}, so no passphrase is asked for."
            return {"forgotten": count, "text": text}
        what = "1 terminal is" if count == 1 else f"{count} terminals are"
        return {"forgotten": count, "text": f"{what} forgotten; the passphrase is needed again."}

    def forget_all(self) -> int:
        """Forget every terminal, and what single connections gave; returns how many terminals."""
        count = sum(self._remembered_until(terminal) is not None for terminal in self._remembered)
        self._epoch += 1
        self._remembered.clear()
        return count

    async def _unlocked(self, seat: Seat, passphrase: str, reviewer: Reviewer) -> dict[str, Any]:
        if not self.asks:
            raise RequestError(NOT_USED)
        async with self._one_at_a_time:
            epoch = self._epoch
            await self._check(seat, passphrase, self._kept, reviewer)
            await self._record.append(self._event("operator.unlocked", reviewer, seat))
            self._remember(seat, epoch)
        return self.standing(seat)

    async def _changed(
        self, seat: Seat, old: str | None, passphrase: str, reviewer: Reviewer
    ) -> dict[str, Any]:
        if fault := fault_of(passphrase):
            raise RequestError(fault, field="passphrase")
        async with self._one_at_a_time:
            kept = self._kept if self.asks else await asyncio.to_thread(self._vault.load)
            if kept is not None:
                if old is None:
                    raise RequestError("a passphrase is set; give it, too, to change it", field="old")
                await self._check(seat, old, kept, reviewer)
            await self._record.append(self._event("operator.passphrase-set", reviewer, seat))
            self._kept = await asyncio.to_thread(self._vault.keep, passphrase)
            self.forget_all()
        return {"text": "The passphrase is set; every terminal must give it."}

    async def _check(self, seat: Seat, passphrase: str, kept: str | None, reviewer: Reviewer) -> None:
        """Return where the passphrase is right; else raises NotPermitted, and makes the next guess wait."""
        if self.asks and seat.here is None:
            raise NotPermitted(NO_TERMINAL)
        if wait := self._guesses.wait_s(reviewer.id):
            raise NotPermitted(
                f"after a wrong passphrase none is looked at for a while; try again in {math.ceil(wait)} s"
            )
        if kept is None or not await asyncio.to_thread(self._vault.matches, kept, passphrase):
            await self._wrong(seat, self._guesses.count(reviewer.id), reviewer)
            wait = max(1, math.ceil(self._guesses.wait_s(reviewer.id)))
            raise NotPermitted(f"this is not the operator's passphrase; the next try counts in {wait} s")
        self._guesses.forget(reviewer.id)

    async def _wrong(self, seat: Seat, count: int, reviewer: Reviewer) -> None:
        wrong = self._event("operator.passphrase-wrong", reviewer, seat, inARow=count)
        if count % ALARM_AFTER:
            await self._record.append(wrong)
            return
        alarm = self._event("security.wrong-passphrase", reviewer, seat, inARow=count)
        await self._record.append(wrong, alarm)
        for told in self.on_security:
            told(alarm)

    def _remember(self, seat: Seat, epoch: int) -> None:
        """Keep that it was given, under the epoch in which it came: what was forgotten meanwhile stays so."""
        lasts = self._settings().remember_for
        proof = Proof(epoch, self._clock.now(), self._clock.monotonic(), lasts or LONGEST_ONCE_MS)
        if not lasts or seat.terminal is None:
            seat.proof = proof
            return
        alive = {at: kept for at, kept in self._remembered.items() if self._remembered_until(at)}
        self._remembered = {**alive, seat.terminal: proof}

    def _was_given(self, seat: Seat) -> bool:
        """Tell whether this connection gave it, where nothing is remembered."""
        return seat.proof is not None and self._ends(seat.proof, LONGEST_ONCE_MS) is not None

    def _remembered_until(self, terminal: Terminal) -> int | None:
        proof = self._remembered.get(terminal)
        return self._ends(proof, self._settings().remember_for) if proof else None

    def _ends(self, proof: Proof, most_ms: int) -> int | None:
        """Return when this ends, by whichever clock is first and `most_ms` at most; None where it has."""
        lasts = min(proof.lasts_ms, most_ms)
        steady_ms = (self._clock.monotonic() - proof.given_steady) * 1000
        gone_ms = max(self._clock.now() - proof.given_at, steady_ms)
        return proof.given_at + lasts if proof.epoch == self._epoch and gone_ms < lasts else None

    def _event(self, kind: str, reviewer: Reviewer, seat: Seat | None = None, **data: Any) -> AuditEvent:  # noqa: ANN401 - plain JSON
        place = {"name": reviewer.name, "place": str(seat.terminal)} if seat and seat.terminal else {}
        actor = f"person:{reviewer.channel}:{reviewer.id}"
        return AuditEvent(self._clock.now(), kind, actor, None, {**place, **data})
