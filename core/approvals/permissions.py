"""What answers left standing, for the operator to see and to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.display import safe
from core.errors import UnknownRequest
from core.model.principal import Reviewer, named
from core.model.request import MIN_PREFIX, AuditEvent
from core.model.standing import DenyRule, StandingPermission
from core.ports import Clock, StandingStore


class Permissions:
    """Lists permissions and deny rules, and ends them; configured secrets are masked by value."""

    def __init__(self, store: StandingStore, clock: Clock, secrets: Sequence[str] = ()) -> None:
        self._store = store
        self._clock = clock
        self._masked = tuple(secrets)

    async def standing(self) -> list[dict[str, Any]]:
        """List permissions and deny rules that count, oldest first."""
        allowed = [_permission(one) for one in await self._store.permissions(self._clock.now())]
        denied = [_deny_rule(one) for one in await self._store.deny_rules()]
        return sorted(map(self._shown, allowed + denied), key=lambda row: row["givenAt"])

    async def revoke(self, answer_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """End one, by a unique prefix of its id; raises UnknownRequest where there is no such one."""
        row = await self._find(answer_id)
        actor, now = f"person:{reviewer.channel}:{reviewer.id}", self._clock.now()
        if row["effect"] == "allow":
            event = AuditEvent(now, "permission.revoked", actor, row["id"])
            ended = await self._store.end_permission(row["id"], event)
            text = "Revoked: the same command is put to people again."
        else:
            event = AuditEvent(now, "deny-rule.revoked", actor, row["id"])
            ended = await self._store.revoke_deny_rule(row["id"], event)
            text = "Revoked: the same command is decided by the rules again."
        if not ended:
            raise _unknown(answer_id)
        return {"id": row["id"], "text": text}

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        command = safe(row["command"], secrets=self._masked, multiline=True)
        reason = safe(row["reason"], secrets=self._masked) if row["reason"] else None
        return {**row, "command": command, "reason": reason}

    async def _find(self, prefix: str) -> dict[str, Any]:
        if len(prefix) < MIN_PREFIX:
            raise UnknownRequest(
                f"id {prefix!r} is too short; give at least {MIN_PREFIX} characters", field="id"
            )
        found = [row for row in await self.standing() if row["id"].startswith(prefix)]
        if not found:
            raise _unknown(prefix)
        if len(found) > 1:
            several = ", ".join(row["id"] for row in found)
            raise UnknownRequest(f"{prefix} is ambiguous: {several}", field="id")
        return found[0]


def _unknown(prefix: str) -> UnknownRequest:
    return UnknownRequest(
        f"no permission or deny rule that counts has an id that begins with {prefix[:40]!r}; "
        "sayso permissions list shows them",
        field="id",
    )


def _permission(one: StandingPermission) -> dict[str, Any]:
    return {
        "id": one.id,
        "effect": "allow",
        "agent": one.agent,
        "session": one.session,
        "command": one.command,
        "by": named(one.given_by),
        "givenAt": one.given_at,
        "expiresAt": one.expires_at,
        "maxUses": one.max_uses,
        "uses": one.uses,
        "reason": None,
    }


def _deny_rule(one: DenyRule) -> dict[str, Any]:
    return {
        "id": one.id,
        "effect": "deny",
        "agent": one.agent,
        "session": None,
        "command": one.command,
        "by": str(one.given_by),
        "givenAt": one.given_at,
        "expiresAt": None,
        "maxUses": None,
        "uses": None,
        "reason": one.reason,
    }
