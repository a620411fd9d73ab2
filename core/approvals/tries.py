"""How often somebody may get something wrong before they are not listened to for a while."""

from __future__ import annotations

from core.model.principal import Sender
from core.ports import Clock

MOST_SENDERS = 1_000


class Tries:
    """Counts what senders got wrong: so many of one sender within a time, and so many senders."""

    def __init__(self, clock: Clock, *, most: int, window_s: float, most_senders: int = MOST_SENDERS) -> None:
        self._clock = clock
        self._most = most
        self._window_s = window_s
        self._most_senders = most_senders
        self._wrong: dict[tuple[str, str], list[float]] = {}

    def exhausted(self, who: Sender) -> bool:
        """Tell whether this sender has no try left now."""
        lately = self._lately(who)
        if not lately and len(self._wrong) >= self._most_senders:
            self._forget_old()
            return len(self._wrong) >= self._most_senders
        return len(lately) >= self._most

    def count(self, who: Sender) -> None:
        """Note that this sender got something wrong."""
        self._wrong[who.channel, who.id] = [*self._lately(who), self._clock.monotonic()]

    def forget(self, who: Sender) -> None:
        """Begin anew with this sender."""
        self._wrong.pop((who.channel, who.id), None)

    def _lately(self, who: Sender) -> list[float]:
        since = self._clock.monotonic() - self._window_s
        return [at for at in self._wrong.get((who.channel, who.id), ()) if at > since]

    def _forget_old(self) -> None:
        since = self._clock.monotonic() - self._window_s
        self._wrong = {key: tries for key, tries in self._wrong.items() if tries[-1] > since}
