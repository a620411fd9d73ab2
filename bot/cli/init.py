"""`sayso init`: from a bot's token to a configuration that asks its owner, in a few questions."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from getpass import getpass
from pathlib import Path

from adapters.channels.telegram.setup import BotIdentity, Greeting, greeting, identify
from bot.cli import exits
from bot.cli.configuration import loaded
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, note, shown
from bot.first_config import FirstApprover, first_config
from bot.home import write_secret
from core.errors import StartError

_CODE_BYTES = 8
_PATIENCE_S = 120.0
_TRIES = 3
_LATER = ("discord", "slack")
_TELEGRAM = """\
In Telegram, open @BotFather, send /newbot, choose a name, and copy the token that it answers with.
(docs/channels/telegram.md shows each step.)"""


def init_command(arguments: list[str]) -> int:
    """Ask for a channel and write the configuration."""
    options = _parser().parse_args(arguments)
    config: Path = options.config.absolute()
    secret = config.with_name("telegram.token")
    _require_free(config, secret, force=options.force)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses, and they hold the token
    try:
        return _set_up(config, secret, options.api_url, None if options.later else options.wait)
    except StartError as error:
        note(f"sayso: {error}", "red")
        return exits.FAILED


def _parser() -> Parser:
    parser = Parser(
        "init", "Ask for a channel and its token, check them, and write the configuration.", client=False
    )
    parser.add_argument("--config", type=Path, default=Path("sayso.yaml"), metavar="F", help="what to write")
    parser.add_argument("--force", action="store_true", help="overwrite it, and the token beside it")
    parser.add_argument("--api-url", metavar="URL", help="another Bot API server than Telegram's own")
    parser.add_argument(
        "--wait", type=float, default=_PATIENCE_S, metavar="S", help="for the message to the bot"
    )
    parser.add_argument(
        "--later", action="store_true", help="wait for no message; sayso pair telegram lets people in later"
    )
    return parser


def _set_up(config: Path, secret: Path, api_url: str | None, patience_s: float | None) -> int:
    _choose_channel()
    token, bot = _token(api_url)
    if patience_s is None:
        _write(config, secret, token, None, api_url)
        _say_what_is_next(config, None)
        return exits.OK
    found = _greeted(token, bot, api_url, patience_s)
    if found is None:
        note(
            f"no message with the code came within {patience_s:g} s; nothing was written. In Telegram, open "
            "the link above and press Start (in a group, send the whole line), then run sayso init again; "
            "sayso init --later waits for nobody",
            "red",
        )
        return exits.UNANSWERED
    if not _confirmed(found):
        note("nothing was written; run sayso init again for another code")
        return exits.UNANSWERED
    _write(config, secret, token, found, api_url)
    _say_what_is_next(config, found)
    return exits.OK


def _require_free(config: Path, secret: Path, *, force: bool) -> None:
    there = [path for path in (config, secret) if path.exists() or path.is_symlink()]
    if there and not force:
        raise exits.UsageError(
            f"{there[0]} is there already; --force overwrites it, --config F writes elsewhere", "init"
        )
    if not config.parent.is_dir():
        raise exits.UsageError(f"there is no directory {config.parent}; make it first", "init")


def _choose_channel() -> None:
    while True:
        answer = _ask("Which chat shall ask you? [telegram] ").casefold() or "telegram"
        if answer == "telegram":
            return
        why = "comes in a later version" if answer in _LATER else "is no chat that Sayso knows"
        print(f"{shown(answer)[:40]} {why}; now there is telegram.")


def _token(api_url: str | None) -> tuple[str, BotIdentity]:
    print(_TELEGRAM)
    for left in reversed(range(_TRIES)):
        token = _ask("Token of the bot: ", hidden=True)
        try:
            bot = asyncio.run(identify(token, api_url))
        except StartError as error:
            if not left:
                raise
            note(str(error), "red")
        else:
            print(f"This is the token of {shown(bot.name)} (@{shown(bot.username)}).")
            return token, bot
    raise StartError("no token was given")


def _greeted(token: str, bot: BotIdentity, api_url: str | None, patience_s: float) -> Greeting | None:
    code = secrets.token_hex(_CODE_BYTES)
    print("Now tell the bot where to ask. The code in these links is good for this once:")
    print(f"  you alone   open {shown(bot.link(code))} and press Start")
    print(f"  a group     open {shown(bot.group_link(code))} and choose the group")
    print(f"  by hand     send the bot, or write in the group or topic: /start@{shown(bot.username)} {code}")
    print(f"Waiting for that message, {patience_s:g} s at most …", flush=True)
    return asyncio.run(greeting(token, code, patience_s, api_url))


def _confirmed(found: Greeting) -> bool:
    username = f"@{found.username}, " if found.username else ""
    where = f"in {found.place!r} ({found.target})" if found.place else "in a direct message"
    print(shown(f"The code came from {found.name} ({username}id {found.user_id}) {where}."))
    print(shown("This account will decide what runs on this machine."))
    return _ask("Is that you? [y/N] ").casefold() in ("y", "yes")


def _write(config: Path, secret: Path, token: str, found: Greeting | None, api_url: str | None) -> None:
    approver = FirstApprover(found.user_id, found.name, found.target) if found else None
    text = first_config(token_file=str(secret), approver=approver, api_url=api_url)
    write_secret(secret, token)
    write_secret(config, text.rstrip("\n"))
    loaded([config])


def _say_what_is_next(config: Path, found: Greeting | None) -> None:
    print(f"Wrote {shown(config)}, and the token beside it; only you can read them.")
    if found is None:
        print("Nobody can decide yet.")
    print("Next:")
    print(coloured(f"  sayso up --config {shown(config)}", "bold"))
    who = "somebody else" if found else "you"
    print(
        coloured("  sayso pair telegram", "bold") + f"    (in another terminal: lets {who} decide, by a code)"
    )
    print(coloured("  sayso channels test", "bold") + "    (a question that runs nothing)")


def _ask(question: str, *, hidden: bool = False) -> str:
    try:
        if hidden and sys.stdin.isatty():
            return getpass(question).strip()
        return input(question).strip()
    except EOFError:
        raise exits.UsageError("init: the answers ended too early; run it in a terminal", "init") from None
