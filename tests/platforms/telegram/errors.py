"""How the server says no."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """An answer with ok=false; `violation` marks what no correct client would have sent."""

    def __init__(self, code: int, text: str, *, violation: bool = False, **parameters: Any) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.violation = violation
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.text}
        return {**answer, "parameters": self.parameters} if self.parameters else answer


def bad_request(text: str, *, violation: bool = False, **parameters: Any) -> ApiError:
    return ApiError(400, f"Bad Request: {text}", violation=violation, **parameters)
