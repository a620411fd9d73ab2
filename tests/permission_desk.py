"""A PermissionDesk in memory, for the places that show what stands."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import UnknownRequest
from core.model.principal import Reviewer


class MemoryPermissions:
    """Keeps rows as the real desk tells them, and who revoked which."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.revoked: list[tuple[str, Reviewer]] = []

    def stand(self, **changes: Any) -> dict[str, Any]:
        """Let something stand; every field can be given differently."""
        row = {
            "id": "5a5a5a5a-1111-4222-8333-444455556666",
            "effect": "allow",
            "agent": "main",
            "session": "agent:main:main",
            "command": "/usr/bin/git push origin main",
            "by": "ann (telegram:1234)",
            "givenAt": 1_800_000_000_000,
            "expiresAt": 1_800_001_800_000,
            "maxUses": 5,
            "uses": 2,
            "reason": None,
        } | changes
        self.rows.append(row)
        return row

    def forbid(self, **changes: Any) -> dict[str, Any]:
        """Let a deny rule stand."""
        nothing = dict.fromkeys(("session", "expiresAt", "maxUses", "uses"))
        return self.stand(
            **{"id": "6b6b6b6b-1111-4222-8333-444455556666", "effect": "deny", **nothing, **changes}
        )

    async def standing(self) -> list[dict[str, Any]]:
        return list(self.rows)

    async def revoke(self, answer_id: str, reviewer: Reviewer) -> dict[str, Any]:
        found = [row for row in self.rows if row["id"].startswith(answer_id)]
        if len(answer_id) < 8 or len(found) != 1:
            raise UnknownRequest(f"no permission has the id {answer_id!r}", field="id")
        self.rows.remove(found[0])
        self.revoked.append((found[0]["id"], reviewer))
        return {"id": found[0]["id"], "text": "Revoked: the same command is put to people again."}


@pytest.fixture
def permissions() -> MemoryPermissions:
    return MemoryPermissions()
