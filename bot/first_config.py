"""The first configuration of an installation, as text for its owner to go on with."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FirstApprover:
    """Who is asked from the start, and where; `name` is only a comment."""

    user_id: int
    name: str
    target: str


def first_config(*, token_file: str, approver: FirstApprover | None, api_url: str | None) -> str:
    """Write the configuration in which one person is asked on Telegram, or nobody until `sayso pair`."""
    api = f"\n    apiUrl: {json.dumps(api_url)}" if api_url else ""
    return f"""\
# Written by `sayso init`. config.example.yaml has every key, and what it means for your safety.

tools:
  profile: coding             # files, commands, web, memory, sessions and images
  exec:
    security: allowlist       # what is on no list is asked
    ask: on-miss

approvals:
  exec:
    mode: targets             # ask in the places below, wherever the agent's session is
{_asked(approver)}

channels:
  telegram:
    token: {json.dumps("file:" + token_file.replace("${", "$${"))}{api}
"""


def _asked(approver: FirstApprover | None) -> str:
    if approver is None:
        return "    # and in the direct messages of those whom `sayso pair telegram` lets in"
    comment = "".join(character for character in approver.name if character.isprintable())[:60]
    return f"""\
    approvers:
      - {json.dumps(f"telegram:{approver.user_id}")}    # {comment}
    targets:
      - channel: telegram
        to: {json.dumps(approver.target)}"""
