"""`sayso channels test`: a question that runs nothing, and who answered it."""

from __future__ import annotations

import time
from typing import Any

from bot.cli import exits
from bot.cli.operator import connected
from bot.cli.parser import Parser, verb
from bot.cli.terminal import coloured, left, note, put_json, shown, span
from bot.client import Client

Json = dict[str, Any]

_LOOK_S = 0.25


def channels_command(arguments: list[str]) -> int:
    """Test channels."""
    verbs = {"test": "put a test question to the chats, and wait for a press; nothing runs"}
    _, rest = verb("channels", arguments, "The chats in which people decide.", verbs)
    parser = Parser("channels test", "Put a test question to the chats and wait for a press; nothing runs.")
    parser.add_argument("channel", nargs="?", metavar="CHANNEL", help="only this one (default: every chat)")
    parser.json_flag()
    options = parser.parse_args(rest)
    with connected() as client:
        asked = client.call("channels.test", {"channel": options.channel} if options.channel else {})
        note(f"test question {asked['id'][:8]}: press a button there, {left(asked['deadline'])}", "yellow")
        ended = _follow(client, asked["id"])
    return _tell(ended, as_json=options.json)


def _follow(client: Client, request_id: str) -> Json:
    """Say where the question was posted, and return it once it was answered or is over."""
    told: set[tuple[str, str]] = set()
    while True:
        request: Json = client.call("request.show", {"id": request_id})
        copies = request["copies"]
        posted = {(copy["channel"], copy["place"]) for copy in copies if copy["ref"] is not None}
        for place in sorted(posted - told):
            note(f"posted: {' '.join(place)}")
        told |= posted
        if request["state"] != "waiting":
            _tell_unposted(copies)
            return request
        time.sleep(_LOOK_S)


def _tell_unposted(copies: list[Json]) -> None:
    for copy in copies:
        if copy["ref"] is None:
            where = f"{copy['channel']} {copy['place']}"
            note(f"not posted: {where}; sayso status tells how it is", "red")


def _tell(request: Json, *, as_json: bool) -> int:
    approval = request["outcome"]["approval"] or {}
    took = (approval.get("at", request["createdAt"]) - request["createdAt"]) / 1000
    who = approval.get("by")
    if as_json:
        places = request["copies"]
        put_json(
            {
                "id": request["id"],
                "by": who,
                "decision": approval.get("decision"),
                "seconds": took,
                "places": places,
            }
        )
    elif who:
        pressed = f"{shown(who)} answered {approval['decision']} after {span(took)}; nothing ran"
        print(coloured(pressed, "green"))
    else:
        print(coloured(f"nobody answered: {shown(request['decided'])}", "red"))
        note("  next:  sayso status; are the approvers' ids right, and do they see that chat?")
    return exits.OK if who else exits.UNANSWERED
