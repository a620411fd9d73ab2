"""Who is signed in: one-time links, logins that survive a restart, and the proof that a form is ours."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import deque

from core.ports import Clock
from core.store_ports import CredentialStore

LINK_MS = 5 * 60_000
_MOST_LINKS = 20
_FAILURES_PER_MINUTE = 10
_MINUTE_S = 60.0
_LONGEST_TOKEN = 128


def digest(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def csrf_of(token: str) -> str:
    """Return the proof that a form was made for this login; only who holds the token can make it."""
    return hmac.new(token.encode(), b"sayso form", hashlib.sha256).hexdigest()


def csrf_matches(token: str, given: str) -> bool:
    """Compare in constant time; text that is not ASCII never matches."""
    return given.isascii() and hmac.compare_digest(csrf_of(token), given)


class LoginLinks:
    """One-time codes, in memory only: a restart ends them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expiries: dict[str, int] = {}

    def make(self) -> tuple[str, int]:
        """Return a new code and when it expires (epoch ms)."""
        self._forget_expired()
        while len(self._expiries) >= _MOST_LINKS:
            del self._expiries[next(iter(self._expiries))]
        code, expires_at = secrets.token_urlsafe(24), self._clock.now() + LINK_MS
        self._expiries[digest(code)] = expires_at
        return code, expires_at

    def alive(self, code: str) -> bool:
        """Tell whether a code could still be used."""
        self._forget_expired()
        return digest(code) in self._expiries

    def consume(self, code: str) -> bool:
        """Use a code up; False where it was used, has expired or never was."""
        self._forget_expired()
        return self._expiries.pop(digest(code), None) is not None

    def _forget_expired(self) -> None:
        now = self._clock.now()
        self._expiries = {key: at for key, at in self._expiries.items() if at > now}


class FailureLimit:
    """At most so many failed sign-ins a minute from one address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def reached(self, address: str) -> bool:
        """Tell whether this address has to wait."""
        since = self._clock.monotonic() - _MINUTE_S
        for key, times in list(self._failures.items()):
            while times and times[0] <= since:
                times.popleft()
            if not times:
                del self._failures[key]
        return len(self._failures.get(address, ())) >= _FAILURES_PER_MINUTE

    def note(self, address: str) -> None:
        """Count a failed sign-in."""
        self._failures.setdefault(address, deque(maxlen=_FAILURES_PER_MINUTE)).append(self._clock.monotonic())


class Logins:
    """Logins of the page, of which only digests are kept."""

    def __init__(self, store: CredentialStore, clock: Clock, hours: float) -> None:
        self._store = store
        self._clock = clock
        self.seconds = int(hours * 3600)

    async def begin(self) -> str:
        """Start a login and return its token."""
        token = secrets.token_urlsafe(32)
        await self._store.put_login(digest(token), self._clock.now() + self.seconds * 1000)
        return token

    async def valid(self, token: str) -> bool:
        """Tell whether a cookie's token is a login that is alive."""
        if not token or len(token) > _LONGEST_TOKEN:
            return False
        return await self._store.login_valid(digest(token), self._clock.now())

    async def end(self, token: str) -> None:
        """Sign out."""
        await self._store.end_login(digest(token))
