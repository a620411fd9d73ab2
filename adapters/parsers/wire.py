"""Parsed commands as plain data: what a worker answers, one JSON object a line."""

from __future__ import annotations

import json
from typing import Any, Final

from core.model.command import Expansion, Word
from core.shell.assemble import SimpleCommand
from core.shell.scan import Refused

_EXPANSIONS: Final = {expansion.value[0]: expansion for expansion in Expansion}


def encode_ready(pid: int) -> bytes:
    """Give what a worker says first: which process it is."""
    return b"ready %d\n" % pid


def decode_ready(data: bytes) -> int:
    """Read a worker's first line; ValueError where it is another."""
    word, pid = data.split()
    if word != b"ready":
        raise ValueError("it did not say that it is ready")
    return int(pid)


def encode_line(text: str) -> bytes:
    """Give a command line as a request."""
    return json.dumps(text).encode("ascii") + b"\n"


def decode_line(data: bytes) -> str:
    """Read a request."""
    return str(json.loads(data))


def encode_commands(commands: tuple[SimpleCommand, ...]) -> bytes:
    """Give what was parsed as an answer."""
    return _packed({"commands": [_command_out(command) for command in commands]})


def encode_refusal(refused: Refused) -> bytes:
    """Give why nothing was parsed as an answer."""
    found = refused.refusal
    return _packed({"refused": [found.construct, found.position, found.reason]})


def decode_answer(data: bytes) -> tuple[SimpleCommand, ...]:
    """Read an answer; raises Refused where it is one, ValueError and its kin where it is no answer."""
    answer = json.loads(data)
    if "refused" in answer:
        construct, position, reason = answer["refused"]
        raise Refused(construct, position, reason)
    return tuple(_command_in(row) for row in answer["commands"])


def _packed(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n"


def _command_out(command: SimpleCommand) -> list[Any]:
    assignments = [[name, _word_out(value)] for name, value in command.assignments]
    words = [_word_out(word) for word in command.words]
    return [command.start, assignments, words, command.redirections, command.operator]


def _command_in(row: list[Any]) -> SimpleCommand:
    start, assignments, words, redirections, operator = row
    pairs = [(name, _word_in(value)) for name, value in assignments]
    return SimpleCommand(start, pairs, [_word_in(word) for word in words], redirections, operator)


def _word_out(word: Word) -> list[str]:
    return [word.value, word.source, "".join(sorted(each.value[0] for each in word.expansions))]


def _word_in(row: list[str]) -> Word:
    value, source, letters = row
    return Word(value, source, frozenset(_EXPANSIONS[letter] for letter in letters))
