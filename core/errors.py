"""Everything Sayso raises on purpose; callers may catch `SaysoError` for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MOST_FILES: Final = 3  # that one sentence names


class SaysoError(Exception):
    """Something went wrong that a person can be told about in one sentence."""


class ConfigError(SaysoError):
    """The configuration cannot be used; the message names file, line and key."""


class StartError(SaysoError):
    """The daemon cannot start here: port taken, another daemon alive, database damaged."""


class StoreError(SaysoError):
    """The database could not keep what it was given; nothing of it was kept."""


class RequestError(SaysoError):
    """What was asked for is not well-formed, not known, or not for this caller."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnknownRequest(RequestError):  # noqa: N818 - reads as what it is: the id names nothing
    """No kept request has this id, or several begin with it."""


class NotPermitted(SaysoError):  # noqa: N818 - as above: the caller may not do this
    """The caller's credential does not carry this right."""


class PassphraseNeeded(NotPermitted):
    """The operator's passphrase was not given where this comes from, or its time is over."""


class RunError(SaysoError):
    """The run itself could not start: no sandbox, no such program, no workspace."""


class BindingMismatch(RunError):  # noqa: N818 - named after what is told to people
    """What would run is not what was approved: `changed` are the parts that differ, `files` those of them."""

    def __init__(self, changed: tuple[str, ...], files: Sequence[str] = ()) -> None:
        said = [f"approval binding mismatch: {', '.join(changed)} changed since it was decided"]
        if files:
            said.append(f"no longer what was looked at: {', '.join(files[:_MOST_FILES])}")
        if "plan" in changed:
            said.append("it would now run elsewhere, as another account or with other limits")
        super().__init__("; ".join((*said, "nothing of it ran, ask again")))
        self.changed = changed


class DeliveryError(SaysoError):
    """A message to a channel did not arrive, as far as can be known; it is tried again."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeliveryUnclear(DeliveryError):  # noqa: N818 - named after what is known of it
    """It may have arrived: sending it again could show it twice, so a question is not repeated."""


class DeliveryRefused(DeliveryError):  # noqa: N818 - as above
    """It can never arrive there: the chat is gone, the bot was removed, the message was deleted."""
