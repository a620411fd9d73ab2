"""`sayso pair`: let a person in through a chat, by a one-time code and a look at who sent it."""

from __future__ import annotations

import sys
import termios
import time
from contextlib import suppress

from bot.cli import exits
from bot.cli.operator import ask, connected
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, left, note, put_json, shown
from bot.client import Client, ClientError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_LOOK_S = 0.25
_CLEAR = "\r\x1b[K"
_ENDED = {
    "expired": "nobody sent the code in time; run sayso pair again for another",
    "void": "others know the code, so it no longer counts; run sayso pair again",
    "refused": "the code was withdrawn elsewhere",
    "confirmed": "this person was let in elsewhere",
}


def pair_command(arguments: list[str]) -> int:
    """Let a person in."""
    options = _parser().parse_args(arguments)
    if not sys.stdin.isatty():
        raise exits.UsageError(
            "pair: it asks whether the person who sent the code is the right one, so run it in a terminal",
            "pair",
        )
    with connected() as client:
        asked = {"channel": options.channel, **({"route": options.route} if options.route else {})}
        made: Json = client.call("pairing.invite", asked)
        try:
            return _pair(client, made, _addressee(client, options.channel), as_json=options.json)
        except KeyboardInterrupt:
            _withdraw(made["id"])
            return exits.INTERRUPTED


def _parser() -> Parser:
    parser = Parser(
        "pair", "Let a person decide in a chat: they send a one-time code, you say whether it is them."
    )
    parser.add_argument("channel", metavar="CHANNEL", help="telegram, for example")
    parser.add_argument(
        "--route",
        metavar="R",
        help="a `to` of approvals.exec.targets: decide there (default: in their own direct messages)",
    )
    parser.json_flag()
    return parser


def _addressee(client: Client, channel: str) -> str:
    """Say to whom the person writes; the bot's name, where the channel tells it."""
    rows = client.call("daemon.status").get("health", [])
    told = (row.get("username") for row in rows if row["channel"] == channel)
    return f"{next(filter(None, told), 'the bot')} in {channel}"


def _pair(client: Client, made: Json, addressee: str, *, as_json: bool) -> int:
    if as_json:
        put_json(made)
    note(f"The person sends this to {addressee}, in a direct message (not in a group):")
    note(f"\n  /pair {made['code']}\n", "bold")
    note("It counts once. Give it to this person alone; Ctrl-C withdraws it.")
    now = _until_claimed(client, made["id"])
    if now["state"] != "claimed":
        return _end(now, accepted=False, words=_ENDED[now["state"]], as_json=as_json)
    accepted = _is_the_right_one(now["person"])
    try:
        answer = client.call("pairing.confirm", {"id": made["id"], "accepted": accepted})
    except Refused as error:
        return _end(now, accepted=False, words=error.message, as_json=as_json)
    return _end(now, accepted=accepted, words=answer["text"], as_json=as_json)


def _until_claimed(client: Client, invitation: str) -> Json:
    """Wait for somebody to send the code; what is left of the time is shown on a terminal."""
    live, told = sys.stderr.isatty(), ""
    try:
        while True:
            now: Json = client.call("pairing.show", {"id": invitation})
            if now["state"] != "open":
                return now
            words = f"waiting, {left(now['expiresAt'])}"
            if live and words != told:
                sys.stderr.write(f"{_CLEAR}{words}")
                sys.stderr.flush()
                told = words
            time.sleep(_LOOK_S)
    finally:
        if told:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _is_the_right_one(person: Json) -> bool:
    username = f"@{shown(person['username'])}, " if person["username"] else ""
    who = f"{shown(person['name'])} ({username}id {shown(person['id'])})"
    note(f"The code came from {who} in {shown(person['channel'])}.")
    note("Names can be chosen freely; ask the person for the id where you are not sure.")
    note("This account will decide what runs on this machine.", "yellow")
    # What was typed before the name was shown is no answer to it.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write("Let this person in? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _end(now: Json, *, accepted: bool, words: str, as_json: bool) -> int:
    if as_json:
        put_json({"id": now["id"], "accepted": accepted, "person": now["person"], "text": words})
    else:
        print(coloured(shown(words), "green" if accepted else "red"))
    return exits.OK if accepted else exits.UNANSWERED


def _withdraw(invitation: str) -> None:
    """Withdraw the code over a connection of its own: an answer may be half read on the other."""
    with suppress(ClientError):
        ask("pairing.confirm", id=invitation, accepted=False)
        note("\nwithdrawn; the code no longer counts")
