"""What a layer answers: an effect, why, by which rule, written where, and on what terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any

from msgspec import Struct

_DEFAULT = " (default)"


def default_of(path: str) -> str:
    """Give the source of a setting that nobody wrote: the path at which it would be changed."""
    return f"{path}{_DEFAULT}"


def is_default(source: str) -> bool:
    """Tell whether nobody wrote the setting that a source names."""
    return source.endswith(_DEFAULT)


class Effect(IntEnum):
    """Ordered so that the strictest of several is their maximum."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    def __str__(self) -> str:
        return self.name.lower()


class Layer(StrEnum):
    """The layers of text 002, in the order in which people know them."""

    TOOL_POLICY = "tool_policy"
    EXEC_SECURITY = "exec_security"
    APPROVALS = "approvals"
    ELEVATED = "elevated"


class Obligation(StrEnum):
    """A term of an allow or ask that enforcement must keep, or else refuse."""

    NEVER_REMEMBER = "never-remember"  # a yes counts once; "always" is not offered
    NO_FALLBACK = "no-fallback"  # a timeout may not turn this into a yes
    ELEVATES = "elevates"  # only a person in allowFrom may say yes


class Constraint(Struct, frozen=True):
    """A term of a yes that whoever carries the call out must keep: its kind, and plain JSON values.

    `connect-to` {host, addresses}: connect to these addresses alone; `judge-redirects` {}: have each redirect
    judged as a call of its own; `no-redirects` {}; `max-response-bytes` {bytes};
    `max-size-bytes` {path, bytes};
    `real-path` {path, realPath}: this is the file that was judged.
    """

    kind: str
    values: tuple[tuple[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give one row of `constraints`."""
        return {"kind": self.kind, **dict(self.values)}


class Decision(Struct, frozen=True):
    """One layer's answer.

    `rule` is a stable machine name (`exec.redirection`), `source` the configuration path that holds it
    (`agents.main.exec.allowlist[0]`), with ` (default)` behind it where nobody wrote it, or `built-in`.
    """

    layer: Layer
    effect: Effect
    reason: str
    rule: str
    source: str = "built-in"
    obligations: frozenset[Obligation] = frozenset()

    def to_json(self) -> dict[str, str]:
        """Give the shape of one `trace` row of `explain`."""
        return {
            "layer": self.layer.value,
            "effect": str(self.effect),
            "reason": self.reason,
            "rule": self.rule,
            "source": self.source,
        }


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the strictest decision, the first of equals; no decision at all is a denial."""
    nothing = Decision(
        Layer.TOOL_POLICY, Effect.DENY, "no layer decided, so the answer is no", "nothing-decided"
    )
    return max(decisions, key=lambda decision: decision.effect, default=nothing)


def most_telling(decisions: Sequence[Decision], own: Sequence[Decision]) -> Decision:
    """Return the strictest decision; of a yes, what was said of this very call (`own`) where anything was."""
    found = strictest(decisions)
    return strictest(own) if own and found.effect is Effect.ALLOW else found
