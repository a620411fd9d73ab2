"""How the channel is, and a line in the log whenever that changes."""

from __future__ import annotations

import logging

log = logging.getLogger("sayso.telegram")

REVOKED = (
    "revoked: Telegram does not accept the token any more; get a new one from @BotFather (/token), "
    "put it where channels.telegram.token reads it, and restart Sayso"
)


class Health:
    """The state of the channel: ok, degraded or down, with words."""

    def __init__(self) -> None:
        self._state = ("down", "not open")
        self._moved: dict[int, int] = {}

    @property
    def revoked(self) -> bool:
        """Whether the token has ended, for good."""
        return self._state[1] == REVOKED

    def get(self) -> tuple[str, str]:
        """Return state and words; groups that moved are a trouble of their own."""
        if self._state[0] == "ok" and self._moved:
            return "degraded", "; ".join(_moved_words(old, new) for old, new in self._moved.items())
        return self._state

    def connecting(self) -> None:
        """Note that the channel was opened."""
        self._state = ("degraded", "connecting")

    def ok(self) -> None:
        """Note that Telegram answered."""
        if self._state[0] != "ok" and not self.revoked:
            log.info("telegram: connected")
            self._state = ("ok", "connected")

    def trouble(self, words: str) -> None:
        """Note that something does not work at the moment."""
        if not self.revoked and self._state != ("degraded", words):
            log.warning("telegram: %s", words)
            self._state = ("degraded", words)

    def revoke(self) -> None:
        """Note that the token has ended; said once."""
        if not self.revoked:
            log.error("telegram: %s", REVOKED)
            self._state = ("down", REVOKED)

    def closed(self) -> None:
        """Note that the channel was closed."""
        self._state = ("down", "closed")

    def moved(self, old: int, new: int) -> None:
        """Note that a group goes on under another id."""
        if self._moved.get(old) != new:
            log.warning("telegram: %s", _moved_words(old, new))
            self._moved[old] = new


def _moved_words(old: int, new: int) -> str:
    return f"the group {old} became the supergroup {new}: put {new} into the configuration"
