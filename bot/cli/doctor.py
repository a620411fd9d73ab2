"""`sayso doctor`: shows what `bot.doctor` finds out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.cli import exits
from bot.cli.configuration import loaded
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, put_json, shown
from bot.client import home, sockets_for
from bot.doctor import Check, examine

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor_command(arguments: list[str]) -> int:
    """Examine this machine and the configuration; exit 1 where something fails."""
    parser = Parser("doctor", "Is everything that protects you really on? Exit 1 where something fails.")
    parser.add_argument("--config", action="append", type=Path, default=[], metavar="F")
    parser.json_flag()
    options = parser.parse_args(arguments)
    checks = asyncio.run(examine(loaded(options.config), Path(home()), Path(sockets_for("operator")[0])))
    if options.json:
        put_json([_row(check) for check in checks])
    else:
        for check in checks:
            _print(check)
    return exits.DIFFERENCE if any(str(check.status) == "fail" for check in checks) else exits.OK


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
