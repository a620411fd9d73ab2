"""What may be a passphrase."""

from __future__ import annotations

SHORTEST = 8
LONGEST = 1_000


def fault_of(passphrase: str) -> str | None:
    """Say why this cannot be a passphrase, without repeating any of it; None where it can."""
    if not passphrase.strip():
        return "a passphrase must not be empty or blank"
    if len(passphrase) < SHORTEST:
        return f"a passphrase needs at least {SHORTEST} characters, and this one has {len(passphrase)}"
    if len(passphrase) > LONGEST:
        return f"a passphrase may have at most {LONGEST} characters, and this one has {len(passphrase)}"
    return None if encodable(passphrase) else "a passphrase must be text that UTF-8 can hold"


def encodable(passphrase: str) -> bool:
    """Tell whether this is text at all: a terminal of another encoding may give what is none."""
    try:
        passphrase.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
