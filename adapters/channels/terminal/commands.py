"""Commands of chats, typed at the terminal: brought to the desk, with the choices that it offers."""

from __future__ import annotations

from core.model.chat import Choice, Press, Reply, Typed, Verb
from core.model.principal import Reviewer, Sender
from core.ports import ChatDesk, Clock

SETTLE_S = 0.5  # what is younger cannot be answered: what was typed was not meant for it

_HERE = ""  # there is one terminal
_TOO_EARLY = "This list has only just appeared, so that did not count. Read it, then type the number again."


class Typist:
    """The user at the terminal as a sender, and the choices that were offered to them last."""

    def __init__(self, desk: ChatDesk, clock: Clock, user: Reviewer) -> None:
        self._desk = desk
        self._clock = clock
        self._sender = Sender(user.channel, user.id, user.name)
        self._choices: tuple[Choice, ...] = ()
        self._offered_at = 0.0

    @property
    def choosing(self) -> bool:
        """Whether a number means something."""
        return bool(self._choices)

    async def typed(self, text: str) -> Reply | None:
        """Bring a command to the desk; an earlier list is forgotten."""
        self._choices = ()
        reply = await self._desk.typed(Typed(self._sender, _HERE, text, direct=True))
        if reply is not None and reply.choices:
            self._choices, self._offered_at = reply.choices, self._clock.monotonic()
        return reply

    async def chosen(self, number: int) -> Reply:
        """Take the number of a choice; it counts once, and not before the list could be read."""
        if not 1 <= number <= len(self._choices):
            return Reply(f"There is no {number} in the list, which goes from 1 to {len(self._choices)}.")
        if self._clock.monotonic() - self._offered_at < SETTLE_S:
            return Reply(_TOO_EARLY)
        choice = self._choices[number - 1]
        self._choices = ()
        return await self._desk.press(Press(self._sender, _HERE, "", Verb.CHOOSE, choice.token))
