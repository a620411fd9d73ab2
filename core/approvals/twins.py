"""Identical questions: the same agent, the same binding, the same kind. They are put to people once."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from core.model.request import Answer, Request, RequestKind, State
from core.ports import Clock

# A no holds this long for a repeat, too: who lost its connection may just have missed it. A yes never does;
# it counts once.
GRACE_S = 15.0

Key = tuple[str, str, RequestKind]


class Twins:
    """Knows which kept request an identical one joins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[Key, str] = {}
        self._denied: dict[Key, tuple[str, float]] = {}
        self._admissions: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def admission(self, request: Request) -> asyncio.Lock:
        """Return the lock under which identical questions are admitted one after the other."""
        return self._admissions.setdefault(_key(request), asyncio.Lock())

    def find(self, request: Request) -> str | None:
        """Return the id of the question to join."""
        self._forget()
        key = _key(request)
        denied = self._denied.get(key)
        return self._waiting.get(key) or (denied[0] if denied else None)

    def joins(self, kept: Request) -> bool:
        """Tell whether a kept question, as it stands now, answers an identical one."""
        return kept.state is State.WAITING or _denied_by_somebody(kept)

    def note(self, request: Request) -> None:
        """Follow what was committed."""
        key = _key(request)
        if request.state is State.WAITING:
            self._waiting[key] = request.id
        elif self._waiting.get(key) == request.id:
            del self._waiting[key]
            if _denied_by_somebody(request):
                self._denied[key] = (request.id, self._clock.monotonic() + GRACE_S)

    def _forget(self) -> None:
        """Drop what is past its grace; the oldest stand first."""
        now = self._clock.monotonic()
        while self._denied and next(iter(self._denied.values()))[1] <= now:
            del self._denied[next(iter(self._denied))]


def _key(request: Request) -> Key:
    return request.call.agent, request.binding.digest, request.kind


def _denied_by_somebody(request: Request) -> bool:
    # "Deny always" leaves a rule that answers repeats, and that can be revoked at once.
    resolution = request.resolution
    return (
        request.state is State.DENIED
        and resolution is not None
        and resolution.by is not None
        and resolution.decision == Answer.DENY
    )
