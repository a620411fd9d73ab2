"""Letting people in through a chat: a code from the operator, sent by a person, confirmed by the operator."""

from __future__ import annotations

import hmac
import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from core.config import ExecApprovals, RouteTarget
from core.display import safe, span
from core.errors import RequestError
from core.model.chat import Sender, Typed
from core.model.pairing import PairedPerson
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.ports import Clock, Store

CODE_BYTES = 8
OPEN_MS = 10 * 60_000
KEPT_MS = 60 * 60_000
MOST_TRIES = 5
TRIES_WINDOW_MS = 60 * 60_000
MOST_INVITATIONS = 20
MOST_SENDERS = 1_000

REFUSED = "This is no code that counts now. Ask the operator for a new one."
NOT_IN_PUBLIC = (
    "Others can read this code here, so it no longer counts. Ask for a new one, and send it to me alone."
)
TOO_MANY = f"Too many wrong codes from you; try again in {span(TRIES_WINDOW_MS)}."
CLAIMED = "Taken. The operator is asked now whether it is you."

Place = Callable[[str, str], str]


class InvitationState(StrEnum):
    """How an invitation stands."""

    OPEN = "open"
    CLAIMED = "claimed"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Invitation:
    """One code that was handed out; kept in memory alone, so that a restart ends it."""

    id: str
    code: str
    channel: str
    route: str
    expires_at: int
    state: InvitationState = InvitationState.OPEN
    claimed_by: Sender | None = None


class Pairing:
    """Hands out codes, takes them from chats, and keeps who was confirmed."""

    def __init__(
        self, store: Store, clock: Clock, settings: ExecApprovals, place: Place, opened: Sequence[str]
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._place = place
        self._opened = opened
        self._invitations: dict[str, Invitation] = {}
        self._tries: dict[tuple[str, str], list[int]] = {}
        self.paired: tuple[PairedPerson, ...] = ()

    async def load(self) -> None:
        """Read who was let in before."""
        self.paired = await self._store.paired()

    async def invite(self, channel: str, route: str | None) -> dict[str, Any]:
        """Make a one-time code; raises RequestError where the channel or the route is none."""
        place = self._checked(channel, route)
        now = self._clock.now()
        self._forget_old(now)
        if len(self._invitations) >= MOST_INVITATIONS:
            raise RequestError(f"{MOST_INVITATIONS} codes are out already; wait until some have expired")
        code = secrets.token_hex(CODE_BYTES)
        made = Invitation(str(uuid.uuid4()), code, channel, place, now + OPEN_MS)
        self._invitations[made.id] = made
        return {"id": made.id, "code": code, "expiresAt": made.expires_at}

    async def invitation(self, invitation_id: str) -> dict[str, Any]:
        """Tell how an invitation stands."""
        found = self._invitations.get(invitation_id)
        if found is None:
            raise RequestError("there is no such invitation, or it is over for long", field="id")
        state = self._state(found)
        who = found.claimed_by
        person = (
            {"channel": who.channel, "id": who.id, "name": safe(who.name), "username": who.username}
            if who
            else None
        )
        return {"id": found.id, "state": state.value, "expiresAt": found.expires_at, "person": person}

    async def claim(self, typed: Typed, code: str) -> str:
        """Take a code that somebody sent, and say what to tell them; one shown to others counts no more."""
        now, who = self._clock.now(), typed.sender
        if self._tried_often(who, now):
            return TOO_MANY
        found = self._by_code(code)
        if found is None or found.channel != who.channel or self._state(found) is not InvitationState.OPEN:
            self._tries.setdefault((who.channel, who.id), []).append(now)
            await self._record("security.wrong-code", who, typed.place)
            return REFUSED
        if not typed.direct:
            self._invitations[found.id] = replace(found, state=InvitationState.EXPIRED)
            await self._record("security.code-shown", who, typed.place)
            return NOT_IN_PUBLIC
        claimed = replace(found, state=InvitationState.CLAIMED, claimed_by=who)
        self._invitations[found.id] = claimed
        return CLAIMED

    async def confirm(self, invitation_id: str, reviewer: Reviewer, *, accepted: bool) -> dict[str, Any]:
        """Let in, or turn away, the person who sent the code."""
        found = self._invitations.get(invitation_id)
        if found is None or found.claimed_by is None or self._state(found) is not InvitationState.CLAIMED:
            raise RequestError("nobody waits to be let in by this invitation", field="id")
        if not accepted:
            self._invitations[found.id] = replace(found, state=InvitationState.REFUSED)
            return {"accepted": False, "text": "Turned away; the code no longer counts."}
        now, who = self._clock.now(), found.claimed_by
        person = PairedPerson(who.channel, who.id, safe(who.name), found.route, now)
        data = {"channel": who.channel, "id": who.id, "name": safe(who.name), "route": found.route}
        event = AuditEvent(now, "person.paired", f"person:{reviewer.channel}:{reviewer.id}", None, data)
        await self._store.put_paired(person, event)
        await self.load()
        self._invitations[found.id] = replace(found, state=InvitationState.CONFIRMED)
        return {"accepted": True, "text": f"{safe(who.name)} may decide now."}

    async def people(self) -> list[dict[str, Any]]:
        """List who was let in."""
        return [
            {
                "channel": one.channel,
                "id": one.id,
                "name": one.name,
                "route": one.route,
                "pairedAt": one.paired_at,
            }
            for one in self.paired
        ]

    async def unpair(self, channel: str, person: str, route: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take a person's right back at once."""
        found = next((p for p in self.paired if (p.channel, p.id, p.route) == (channel, person, route)), None)
        if found is None:
            raise RequestError("nobody was let in like this; sayso people list shows who was", field="id")
        now = self._clock.now()
        data = {"channel": channel, "id": person, "route": route}
        event = AuditEvent(now, "person.unpaired", f"person:{reviewer.channel}:{reviewer.id}", None, data)
        await self._store.unpair(found, event)
        await self.load()
        return {"text": f"{found.name} may not decide there any more."}

    def _checked(self, channel: str, route: str | None) -> str:
        if channel not in self._opened:
            raise RequestError(
                f"the channel {channel!r} is not open; sayso status tells why", field="channel"
            )
        if route is None:
            return ""
        places = {self._place(t.channel, t.to): t.to for t in self._settings.targets if t.channel == channel}
        try:
            place = self._place(channel, route)
        except ValueError as error:
            raise RequestError(str(error), field="route") from None
        if place not in places:
            known = ", ".join(places.values()) or "none"
            raise RequestError(
                f"{route!r} is no target of {channel} in approvals.exec.targets (there: {known})",
                field="route",
            )
        return place

    def _state(self, found: Invitation) -> InvitationState:
        waits = found.state in (InvitationState.OPEN, InvitationState.CLAIMED)
        return InvitationState.EXPIRED if waits and found.expires_at <= self._clock.now() else found.state

    def _by_code(self, code: str) -> Invitation | None:
        given = code.encode()
        return next(
            (one for one in self._invitations.values() if hmac.compare_digest(one.code.encode(), given)), None
        )

    def _tried_often(self, who: Sender, now: int) -> bool:
        key = (who.channel, who.id)
        lately = [at for at in self._tries.pop(key, []) if 0 <= now - at < TRIES_WINDOW_MS]
        if lately:
            self._tries[key] = lately
        if len(self._tries) > MOST_SENDERS:
            del self._tries[next(iter(self._tries))]
        return len(lately) >= MOST_TRIES

    def _forget_old(self, now: int) -> None:
        self._invitations = {
            key: one for key, one in self._invitations.items() if one.expires_at + KEPT_MS > now
        }

    async def _record(self, kind: str, who: Sender, place: str) -> None:
        data = {"name": who.name, "place": place}
        event = AuditEvent(self._clock.now(), kind, f"person:{who.channel}:{who.id}", None, data)
        await self._store.append(event)


def with_people(settings: ExecApprovals, people: Sequence[PairedPerson], place: Place) -> ExecApprovals:
    """Add those who were let in: to the approvers of their route, or their direct messages to the targets."""
    if not people:
        return settings
    used = settings.targets if settings.mode != "session" else ()
    targets = {(target.channel, place(target.channel, target.to)): target for target in used}
    for person in people:
        at = (person.channel, person.route or place(person.channel, f"user:{person.id}"))
        if person.route and at not in targets:
            continue
        target = targets.get(at) or RouteTarget(channel=person.channel, to=f"user:{person.id}")
        approvers = target.approvers or (settings.approvers if at in targets else ())
        who = f"{person.channel}:id:{person.id}"
        targets[at] = target.model_copy(update={"approvers": (*approvers, who)})
    mode = "both" if settings.mode == "session" and targets else settings.mode
    return settings.model_copy(update={"targets": tuple(targets.values()), "mode": mode})
