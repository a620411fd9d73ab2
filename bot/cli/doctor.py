"""`sayso doctor`: shows what `bot.doctor` finds out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from bot.cli import exits
from bot.cli.configuration import loaded
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, note, put_json, shown
from bot.client import ClientError, home, sockets_for
from bot.doctor import Check, examine
from bot.doctor_channels import status_of

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor_command(arguments: list[str]) -> int:
    """Examine this machine and the configuration; exit 1 where something fails."""
    parser = Parser("doctor", "Is everything that protects you really on? Exit 1 where something fails.")
    parser.add_argument("--config", action="append", type=Path, default=[], metavar="F")
    parser.json_flag()
    options = parser.parse_args(arguments)
    socket = Path(sockets_for("operator")[0])
    checks = asyncio.run(examine(loaded(options.config or _in_force(socket)), Path(home()), socket))
    if options.json:
        put_json([_row(check) for check in checks])
    else:
        for check in checks:
            _print(check)
    return exits.DIFFERENCE if any(str(check.status) == "fail" for check in checks) else exits.OK


def _in_force(socket: Path) -> list[Path]:
    """Ask the living daemon what it was started with; nothing where none answers, or tells."""
    with suppress(ClientError, TimeoutError, OSError):
        status = asyncio.run(status_of(socket))
        if "configuration" in status:
            files, piped = status["configuration"], status.get("piped", [])
            note(_looked_at(files, piped))
            return [Path(file) for file in files]
    note("no --config, and no daemon that tells its own: this looks at the defaults")
    return []


def _looked_at(files: list[str], piped: list[str]) -> str:
    known = " ".join(files) or "the defaults"
    if not piped:
        return f"no --config: this looks at what the daemon runs with, {known}"
    return (
        f"no --config, and of what the daemon runs with, {', '.join(piped)} came by a pipe and cannot be "
        f"read again: this looks at the rest, {known}; give sayso doctor --config with all of it"
    )


def _row(check: Check) -> dict[str, str | None]:
    return {
        "name": check.name,
        "status": str(check.status),
        "detail": check.detail,
        "mend": check.mend or None,
    }


def _print(check: Check) -> None:
    status = str(check.status)
    print(f"{coloured(f'{status:<5}', _COLOURS.get(status, 'bold'))} {check.name}: {shown(check.detail)}")
    if status != "ok" and check.mend:
        print(f"      {shown(check.mend)}")
