"""The daemon itself: where agents reach it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from core.config.section import AbsolutePath, NonEmpty, Section

_SPELLINGS = {
    spelling: mode for mode in ("0600", "0660") for spelling in (mode, mode[1:], f"0o{mode[1:]}", int(mode))
}


def _mode(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, str | int) and not isinstance(value, bool) and value in _SPELLINGS:
        return _SPELLINGS[value]
    raise ValueError(
        "must be 0600 (the daemon's user alone) or 0660 (daemon.socket.group too); "
        "with any other mode users whom nobody let in could connect"
    )


def _visible(path: str) -> str:
    if not path.isprintable():
        raise ValueError("holds characters that cannot be seen; write a path without them")
    return path


SocketMode = Annotated[Literal["0600", "0660"] | None, BeforeValidator(_mode)]


class SocketSettings(Section):
    """`daemon.socket`: the agents' own; without `path` it lies where services and logins have theirs."""

    path: Annotated[AbsolutePath, AfterValidator(_visible)] | None = None
    group: NonEmpty | None = None
    mode: SocketMode = None

    @model_validator(mode="after")
    def _somebody_is_let_in(self) -> Self:
        if self.mode == "0660" and self.group is None:
            raise ValueError("mode 0660 lets a group in and none is named; set group, or leave mode out")
        return self

    @property
    def shared_with(self) -> str | None:
        """The group that may connect; None where it is for the daemon's user alone."""
        return None if self.mode == "0600" else self.group


class DaemonSettings(Section):
    """`daemon`."""

    socket: SocketSettings = SocketSettings()
