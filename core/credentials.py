"""Who holds which token. Tokens are random and kept as SHA-256 digests; nothing here logs one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable

from core.errors import NotPermitted, RequestError
from core.model.request import AgentRecord, AuditEvent
from core.model.session import is_agent_id
from core.ports import Clock
from core.store_ports import CredentialStore

TOKEN_BYTES = 24


def digest(token: str) -> str:
    """Return the form in which a token is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    """Make a token: 24 random bytes, base64url."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def _not_saved(_token: str) -> None:
    pass


class Credentials:
    """Mints, revokes and recognises tokens; live digests are held in memory, so recognising costs nothing."""

    def __init__(self, store: CredentialStore, clock: Clock, operator_token: str | None) -> None:
        self._store = store
        self._clock = clock
        self._operator = digest(operator_token) if operator_token else None
        self._agents: dict[str, str] = {}

    async def load(self) -> None:
        """Learn the live tokens from the store."""
        live = [record for record in await self._store.agents() if record.revoked_at is None]
        self._agents = {record.token_sha256: record.id for record in live}

    async def agent(self, token: str) -> str | None:
        """Return the agent id this live token belongs to."""
        return self._agents.get(digest(token))

    def operator(self, token: str) -> bool:
        """Tell whether this is the operator's token; raises NotPermitted where none counts."""
        if self._operator is None:
            raise NotPermitted(
                "operator.local is off: nobody is the operator on this socket; "
                "decide on the page or in a chat"
            )
        return hmac.compare_digest(digest(token), self._operator)

    def alive(self, agent: str) -> bool:
        """Tell whether this agent has a live token."""
        return agent in self._agents.values()

    async def mint(self, agent: str, actor: str, save: Callable[[str], None] = _not_saved) -> str:
        """Make and keep a token for an agent; raises RequestError for a bad id or one that has a token.

        `save` gets it before it counts: whoever is killed in between has no agent without its token.
        """
        if not is_agent_id(agent):
            raise RequestError(
                f"agent id {agent!r}: use lower case letters, digits, - and _, at most 64", field="id"
            )
        token = new_token()
        save(token)
        now = self._clock.now()
        record = AgentRecord(agent, digest(token), now)
        if not await self._store.put_agent(
            record, AuditEvent(now, "agent.added", actor, None, {"agent": agent})
        ):
            raise RequestError(
                f"agent {agent} has a token; revoke it first: sayso agent revoke {agent}", field="id"
            )
        self._agents = {**self._without(agent), record.token_sha256: agent}
        return token

    async def revoke(self, agent: str, actor: str) -> None:
        """End an agent's token at once; raises RequestError where it never had one."""
        event = AuditEvent(self._clock.now(), "agent.revoked", actor, None, {"agent": agent})
        revoked = await self._store.revoke_agent(agent, event)
        self._agents = self._without(agent)
        if not revoked and agent not in [record.id for record in await self._store.agents()]:
            raise RequestError(f"agent {agent!r} has no token to revoke", field="id")

    def _without(self, agent: str) -> dict[str, str]:
        return {key: name for key, name in self._agents.items() if name != agent}
