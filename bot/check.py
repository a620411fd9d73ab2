"""One line of what `sayso doctor` reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`FAIL` means that something which protects you is off."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A fact about this installation; `mend` says what to do, empty where nothing is to be done."""

    name: str
    status: Status
    detail: str
    mend: str = ""
