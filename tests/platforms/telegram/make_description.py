"""Write description.json, the part of the Bot API description that the test server checks requests with."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

METHODS = (
    "answerCallbackQuery",
    "deleteMessage",
    "deleteWebhook",
    "editMessageReplyMarkup",
    "editMessageText",
    "getChat",
    "getChatMember",
    "getMe",
    "getUpdates",
    "getWebhookInfo",
    "sendChatAction",
    "sendDocument",
    "sendMessage",
    "setMyCommands",
    "setWebhook",
)
# What the server itself makes; fields of other types inside are kept by name and not looked into.
ANSWERS = (
    "AcceptedGiftTypes",
    "CallbackQuery",
    "Chat",
    "ChatFullInfo",
    "ChatMember",
    "ChatMemberAdministrator",
    "ChatMemberBanned",
    "ChatMemberLeft",
    "ChatMemberMember",
    "ChatMemberOwner",
    "ChatMemberRestricted",
    "Document",
    "InaccessibleMessage",
    "MaybeInaccessibleMessage",
    "Message",
    "MessageOrigin",
    "MessageOriginUser",
    "Update",
    "User",
    "WebhookInfo",
)
LEFT_OUT = ("InputRichMessage",)
FIXED = re.compile(r"(?:must be |always )[\"“”]?([a-z_]+)[\"“”]?$")


def compact_field(field: dict[str, Any]) -> dict[str, Any]:
    compact: dict[str, Any] = {"types": field["types"]}
    if field["required"]:
        compact["required"] = True
    fixed = FIXED.search(field["description"])
    if field["name"] in {"type", "status"} and fixed:
        compact["fixed"] = fixed[1]
    return compact


def compact_fields(described: dict[str, Any]) -> dict[str, Any]:
    return {field["name"]: compact_field(field) for field in described.get("fields", ())}


def compact_type(described: dict[str, Any]) -> dict[str, Any]:
    if described.get("subtypes"):
        return {"subtypes": described["subtypes"]}
    return {"fields": compact_fields(described)}


def element(name: str) -> str:
    return name.replace("Array of ", "")


def reachable(whole: dict[str, Any]) -> set[str]:
    """Find every type that a request to METHODS may contain."""
    waiting = [
        kind for name in METHODS for f in whole["methods"][name].get("fields", ()) for kind in f["types"]
    ]
    found: set[str] = set()
    while waiting:
        name = element(waiting.pop())
        if name in found or name in LEFT_OUT or name not in whole["types"]:
            continue
        found.add(name)
        described = whole["types"][name]
        waiting += described.get("subtypes") or []
        waiting += [kind for f in described.get("fields", ()) for kind in f["types"]]
    return found


def compact(whole: dict[str, Any]) -> dict[str, Any]:
    methods, types = whole["methods"], whole["types"]
    return {
        "version": whole["version"],
        "release_date": whole["release_date"],
        "method_names": sorted(methods),
        "methods": {
            name: {"returns": methods[name]["returns"], "fields": compact_fields(methods[name])}
            for name in METHODS
        },
        "types": {name: compact_type(types[name]) for name in sorted(reachable(whole) | set(ANSWERS))},
    }


if __name__ == "__main__":
    source = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(compact(source), ensure_ascii=False, separators=(",", ":"))
    # One line for each method and type: small, and a newer version can be compared.
    text = re.sub(r'(?<=\}),(?="[A-Za-z]+":\{"(?:returns|fields|subtypes)")', ",\n", text)
    (HERE / "description.json").write_text(text + "\n", encoding="utf-8")
