"""From tokens to simple commands joined by operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from core.model.command import Word
from core.shell.builtins import RESERVED, RESERVED_MEANS
from core.shell.scan import Kind, Refused, Token

MAX_COMMANDS: Final = 64
MAX_WORDS: Final = 4096
_OPERATOR: Final = Kind.OPERATOR
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_JOINING: Final = frozenset(("|", "&&", "||"))


class SimpleCommand(Struct):
    """Assignments, words and harmless redirections; `operator` joins it to the next."""

    start: int
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirections: list[str] = field(default_factory=list)
    operator: str = ""


def assemble(tokens: Sequence[Token]) -> tuple[SimpleCommand, ...]:
    """Group tokens; raises Refused for grammar that is not judged."""
    if len(tokens) > MAX_WORDS:
        raise Refused("too-many-words", tokens[MAX_WORDS].start, f"more than {MAX_WORDS} words and operators")
    commands: list[SimpleCommand] = []
    current: SimpleCommand | None = None
    for token in tokens:
        if token.kind is not _OPERATOR:
            if current is None:
                current = SimpleCommand(token.start)
            if token.word is not None and current.words:
                current.words.append(token.word)
            else:
                _add(current, token)
        elif current is not None:
            commands.append(_joined(current, token))
            current = None
        elif token.texts != ("\n",):
            raise Refused("syntax", token.start, f"nothing stands before `{token.texts[0]}`")
    if current is not None:
        commands.append(current)
    return _whole(commands)


def _add(command: SimpleCommand, token: Token) -> None:
    """Add a word before which no other stands, or a redirection."""
    if token.word is not None:
        _add_word(command, token, token.word)
    elif not command.words:
        raise Refused("leading-redirection", token.start, "a redirection before the command misleads")
    else:
        command.redirections.extend(token.texts)


def _add_word(command: SimpleCommand, token: Token, word: Word) -> None:
    """Add an assignment, or the command's name."""
    assignment = _ASSIGNMENT.match(word.source) if token.assigns else None
    if assignment:
        name = assignment.group(1)
        value = Word(word.value[len(name) + 1 :], word.source[len(name) + 1 :], word.expansions)
        command.assignments.append((name, value))
        return
    _check_command_word(token, word)
    command.words.append(word)


def _check_command_word(token: Token, word: Word) -> None:
    construct = RESERVED.get(word.source)
    if construct:
        raise Refused(construct, token.start, f"`{word.source}` {RESERVED_MEANS[construct]}")
    if word.source.startswith("!"):
        raise Refused("history-expansion", token.start, "a command that begins with `!` is not judged")
    if token.assigns:
        raise Refused("array-assignment", token.start, f"`{word.source}` is an assignment that is not judged")
    if not word.literal:
        kinds = ", ".join(sorted(expansion.value for expansion in word.expansions))
        raise Refused("dynamic-command", token.start, f"the command's name is not literal ({kinds})")
    if not word.value:
        raise Refused("empty-command", token.start, "the command's name is empty")


def _joined(command: SimpleCommand, token: Token) -> SimpleCommand:
    operator = token.texts[0]
    if operator == "|&":
        if not command.words:
            raise Refused("syntax", token.start, "nothing that writes stands before `|&`")
        command.redirections.append("2>&1")
        operator = "|"
    command.operator = ";" if operator == "\n" else operator
    return command


def _whole(commands: list[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    if not commands:
        raise Refused("empty", 0, "there is no command in it")
    if len(commands) > MAX_COMMANDS:
        raise Refused("too-many-commands", commands[MAX_COMMANDS].start, f"more than {MAX_COMMANDS} commands")
    last = commands[-1]
    if last.operator in _JOINING:
        raise Refused("syntax", last.start, f"nothing follows `{last.operator}`")
    if last.operator == ";":
        last.operator = ""
    return tuple(commands)
