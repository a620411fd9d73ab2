"""`sayso up`: the daemon in the foreground."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.parser import Parser
from bot.options import UpOptions

if TYPE_CHECKING:
    from argparse import Namespace


def up_command(arguments: list[str]) -> int:
    """Start the daemon and stay until it is stopped."""
    options = _parser().parse_args(arguments)
    from bot.daemon import up  # noqa: PLC0415 - a slip in the flags is told at once

    return up(_options(options))


def _parser() -> Parser:
    parser = Parser(
        "up", "Run the daemon in the foreground; SIGTERM or Ctrl-C stops it in order.", client=False
    )
    parser.add_argument(
        "--config",
        action="append",
        type=Path,
        default=[],
        metavar="F",
        help="later ones overlay earlier ones",
    )
    parser.add_argument("--exec-security", choices=("deny", "allowlist", "full"))
    parser.add_argument("--exec-ask", choices=("off", "on-miss", "always"))
    parser.add_argument(
        "--no-sandbox", action="store_true", help="run on the host; every layer above still holds"
    )
    parser.add_argument("--allow-tool", action="append", default=[], metavar="NAME")
    parser.add_argument("--deny-tool", action="append", default=[], metavar="NAME")
    parser.add_argument("--profile", choices=("full", "coding", "messaging", "minimal"))
    parser.add_argument("--port", type=_port, metavar="N", help="of the page")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="instead of $SAYSO_HOME/sayso.sock")
    return parser


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text[:6]) <= 65_535:  # noqa: PLR2004 - what a port can be
        return int(text)
    raise ArgumentTypeError(f"{text[:40]!r} is no port; 1 to 65535, or 0 for any that is free")


def _options(given: Namespace) -> UpOptions:
    return UpOptions(
        config=tuple(given.config),
        exec_security=given.exec_security,
        exec_ask=given.exec_ask,
        no_sandbox=given.no_sandbox,
        allow_tools=tuple(given.allow_tool),
        deny_tools=tuple(given.deny_tool),
        profile=given.profile,
        port=given.port,
        socket=given.socket,
    )
