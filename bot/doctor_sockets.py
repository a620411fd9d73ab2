"""The two sockets: whether somebody listens, and who else could connect or listen there."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from bot.agent_socket import Place, look_at_directory, place_of
from bot.check import Check, Status
from bot.client import ClientError
from bot.doctor_channels import status_of
from bot.mend import run_on
from core.config import SocketSettings
from core.errors import StartError

_AGENTS = "agents' socket"
_NO_OTHERS = "none: only agents that run as the daemon's user can ask"


async def operators(socket: Path) -> Check:
    """Check the socket of the operator."""
    try:
        await _connect(socket)
    except FileNotFoundError:
        return Check("daemon", Status.WARN, f"nothing listens on {socket}", "sayso up starts it")
    except OSError as error:
        detail = f"{socket} is there, and nobody answers ({type(error).__name__})"
        return Check("daemon", Status.WARN, detail, "sayso up starts it, and clears what a dead one left")
    mode = _mode(socket)
    if mode & 0o007:
        detail = f"every user may connect to {socket} (mode {mode:04o})"
        return Check(
            "daemon", Status.FAIL, detail, f"{run_on(socket, 'chmod 600')}, and start the daemon again"
        )
    return Check("daemon", Status.OK, f"alive on {socket}")


async def agents(settings: SocketSettings, operators: Path, home: Path) -> Check:
    """Check the agents' own socket, where the living daemon says it is or where it would be."""
    try:
        place = await _place(settings, operators)
        if place is None:
            return Check(_AGENTS, Status.OK, _NO_OTHERS)
        return await _agents(place, home)
    except StartError as error:
        return Check(_AGENTS, Status.FAIL, str(error), "put it right, and start the daemon again")


async def _place(settings: SocketSettings, operators: Path) -> Place | None:
    place = place_of(settings, os.environ)
    if settings.path is not None:
        return place
    try:
        told = (await status_of(operators)).get("agentSocket")
    except (ClientError, TimeoutError):
        return place
    return Place(Path(told), place.group if place else None, configured=False) if told else None


async def _agents(place: Place, home: Path) -> Check:
    _look_at(place, home)
    try:
        await _connect(place.path)
    except OSError as error:
        why = error.strerror or type(error).__name__
        detail = f"nobody listens on {place.path} ({why}): only agents of the daemon's user can ask"
        return Check(_AGENTS, Status.WARN, detail, "sayso up opens it; its log tells what is in the way")
    mode = _mode(place.path)
    if mode & 0o007 or (mode & 0o070 and not place.group):
        detail = f"others than were let in may connect to {place.path} (mode {mode:04o})"
        return Check(_AGENTS, Status.FAIL, detail, "start the daemon again")
    who = f"its user and group {place.group.name}" if place.group else "its user alone"
    return Check(_AGENTS, Status.OK, f"{place.path}, for {who}")


def _look_at(place: Place, home: Path) -> None:
    if os.path.exists(place.directory):  # noqa: PTH110 - that of pathlib raises where the way is closed
        look_at_directory(place, home)


async def _connect(socket: Path) -> None:
    async with asyncio.timeout(2):
        _, writer = await asyncio.open_unix_connection(str(socket))
    writer.close()
    await writer.wait_closed()


def _mode(socket: Path) -> int:
    return stat.S_IMODE(socket.stat().st_mode)
