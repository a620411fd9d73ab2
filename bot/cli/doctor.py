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
        files = asyncio.run(status_of(socket)).get("configuration")
        if files is not None:
            note(f"no --config: this looks at what the daemon runs with, {' '.join(files) or 'the defaults'}")
            return [Path(file) for file in files]
    note("no --config, and no daemon that tells its own: this looks at the defaults")
    return []


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
