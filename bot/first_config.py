"""The first configuration of an installation, as text for its owner to go on with."""

from __future__ import annotations

import json


def first_config(*, token_file: str, approver: int, target: str, name: str, api_url: str | None) -> str:
    """Write the configuration in which one person is asked on Telegram."""
    api = f"\n    apiUrl: {json.dumps(api_url)}" if api_url else ""
    comment = "".join(character for character in name if character.isprintable())[:60]
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
    approvers:
      - {json.dumps(f"telegram:{approver}")}    # {comment}
    targets:
      - channel: telegram
        to: {json.dumps(target)}

channels:
  telegram:
    token: {json.dumps("file:" + token_file.replace("${", "$${"))}{api}
"""
