"""A quote-aware scanner over the source text: what it does not know well, it refuses by name.

It runs before the grammar, which may loop or mislead on some of what is refused here.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NoReturn

from msgspec import Struct

from core.model.command import Expansion, Refusal, Word
from core.shell.braces import Mark, expands


class Refused(Exception):  # noqa: N818 - carries a refusal, which is a finding and not a failure
    """The text holds a construct that is not judged."""

    def __init__(self, construct: str, position: int, reason: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(construct, position, reason)


class Kind(Enum):
    """Kinds of tokens."""

    WORD = "word"
    OPERATOR = "operator"
    REDIRECTION = "redirection"


class Token(Struct, frozen=True):
    """A token and where it stands; `texts` are an operator, or redirections in canonical form."""

    kind: Kind
    start: int
    end: int
    texts: tuple[str, ...] = ()
    word: Word | None = None
    assigns: bool = False  # an unquoted `=` is in it


_META: Final = frozenset(" \t\n|&;()<>")
_OPERATOR: Final = re.compile(r"&&|\|\||\|&|;;&?|;&|[|&;\n]")
_REDIRECTION: Final = re.compile(r"&>>|&>|<<<|<<-?|<>|<&|<\(|<|>>|>\||>&|>\(|>")
_PARAMETER: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|\?)")
_DESCRIPTOR_NAME: Final = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\}")
_TEST: Final = re.compile(r"\[\[?(?=[ \t\n|&;()<>]|\Z)")
# Between words a continued line is as good as a blank; one that goes on with the next command misleads.
# Behind an operator it may not lengthen that.
_JOINED: Final = re.compile(r"(?<= )\\\n(?=[ \t]*+[^ \t;\n])|(?<=[|&])\\\n(?=[ \t]*+[^ \t;\n|&<>()#\\])")
_NULL: Final = "/dev/null"
_DESCRIPTOR: Final = re.compile(r"[0-9]*-?")

_REFUSED_REDIRECTIONS: Final[dict[str, tuple[str, str]]] = {
    "<<<": ("here-string", "a here-string feeds text that is not judged"),
    "<<": ("heredoc", "a here-document feeds text that is not judged"),
    "<<-": ("heredoc", "a here-document feeds text that is not judged"),
    "<(": ("process-substitution", "a process substitution runs another command"),
    ">(": ("process-substitution", "a process substitution runs another command"),
}
_DOLLAR: Final[tuple[tuple[str, str, str], ...]] = (
    ("$((", "arithmetic", "arithmetic can run commands in subscripts"),
    ("$[", "arithmetic", "arithmetic can run commands in subscripts"),
    ("$(", "command-substitution", "a command substitution runs another command"),
    ("${", "parameter-expansion", "only ${NAME} can be looked at, no other form"),
)
_DOLLAR_QUOTES: Final[tuple[tuple[str, str, str], ...]] = (
    ("$'", "ansi-c-quoting", "$'…' hides characters behind escapes"),
    ('$"', "locale-quoting", '$"…" is translated before it is used'),
)


def scan(text: str) -> tuple[Token, ...]:
    """Split a line into tokens; raises Refused for everything that is not plainly understood."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tokens: list[Token] = []

    def run(self) -> tuple[Token, ...]:
        while self._at < len(self._text):
            self._token()
        return tuple(self._tokens)

    def _token(self) -> None:
        char = self._text[self._at]
        if char in " \t":
            self._at += 1
        elif char == "#":
            self._comment()
        elif _JOINED.match(self._text, self._at):
            self._at += len("\\\n")
        elif char in "()":
            self._parenthesis()
        elif char in "<>" or self._text.startswith("&>", self._at):
            self._redirection("", self._at)
        elif char in "|&;\n":
            self._operator()
        else:
            self._word_token()

    def _comment(self) -> None:
        if self._text[self._at - 1 : self._at] in {";", "&", "|"}:
            self._refuse("comment", "a comment right behind an operator is read in more ways than one")
        end = self._text.find("\n", self._at)
        self._at = end if end >= 0 else len(self._text)

    def _operator(self) -> None:
        match = _OPERATOR.match(self._text, self._at)
        operator = match.group() if match else ""
        if operator.startswith((";;", ";&")):
            self._refuse("syntax", "`;;` and its kin belong to case, which is not judged")
        start, self._at = self._at, self._at + len(operator)
        self._tokens.append(Token(Kind.OPERATOR, start, self._at, (operator,)))

    def _parenthesis(self) -> NoReturn:
        if self._text[self._at] == ")":
            if any(token.word and token.word.source == "case" for token in self._tokens):
                self._refuse("compound-command", "`case` begins a compound command, which is not judged")
            self._refuse("syntax", "a closing parenthesis that nothing opened")
        if self._text.startswith("((", self._at):
            self._refuse("arithmetic", "arithmetic can run commands in subscripts")
        self._refuse("subshell", "a subshell or function is not judged")

    def _word_token(self) -> None:
        start = self._at
        word, assigns = self._word()
        if self._text[self._at : self._at + 1] in {"<", ">"}:
            if word.source.isdecimal():
                self._redirection(word.source, start)
                return
            if _DESCRIPTOR_NAME.fullmatch(word.source):
                self._refuse("redirection", "a redirection into a variable is not judged", start)
        self._tokens.append(Token(Kind.WORD, start, self._at, word=word, assigns=assigns))

    def _redirection(self, descriptor: str, start: int) -> None:
        match = _REDIRECTION.match(self._text, self._at)
        operator = match.group() if match else ""
        if operator in _REFUSED_REDIRECTIONS:
            self._refuse(*_REFUSED_REDIRECTIONS[operator], start)
        self._at += len(operator)
        while self._text[self._at : self._at + 1] in {" ", "\t"}:
            self._at += 1
        target = self._word()[0] if self._at < len(self._text) else Word("", "")
        texts = _harmless_redirection(descriptor, operator, target)
        if texts is None:
            shown = f"{descriptor}{operator}{target.source}"
            self._refuse("redirection", f"`{shown}` {_why_harmful(operator, target)}", start)
        self._tokens.append(Token(Kind.REDIRECTION, start, self._at, texts))

    def _word(self) -> tuple[Word, bool]:
        start = self._at
        reader = _WordReader(self._text, start)
        self._at = reader.read()
        return Word(
            "".join(reader.value), self._text[start : self._at], frozenset(reader.found)
        ), reader.assigns

    def _refuse(self, construct: str, reason: str, position: int | None = None) -> NoReturn:
        raise Refused(construct, self._at if position is None else position, reason)


class _WordReader:
    """Reads one word: what bash would make of it, and what it would still expand."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._at = start
        self.value: list[str] = []
        self.found: set[Expansion] = set()
        self.assigns = False
        self._marks: list[Mark] = []

    def read(self) -> int:
        while self._at < len(self._text) and self._text[self._at] not in _META:
            self._piece(self._text[self._at])
        if expands(self._marks, self._text[self._start : self._at]):
            self.found.add(Expansion.BRACE)
        if self._text[self._at : self._at + 1] == "(" and self._at > self._start:
            raise _opened(self._text, self._at)
        return self._at

    def _piece(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "$":
            self._dollar(quoted=False)
        elif char == "`":
            self._backtick()
        else:
            self._plain(char)

    def _plain(self, char: str) -> None:
        if char in "*?[" and not self._is_test(char):
            self.found.add(Expansion.GLOB)
        elif char in "{},":
            self._marks.append((self._at - self._start, char))
        elif char == "~" and (self._at == self._start or self._text[self._at - 1] in "=:"):
            self.found.add(Expansion.TILDE)
        elif char == "=":
            self.assigns = True
        self._take(char)

    def _is_test(self, char: str) -> bool:
        """Tell whether this is the command `[`, or the reserved `[[`, and no glob."""
        return char == "[" and _TEST.match(self._text, self._start) is not None

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        self._no_continuation(following)
        self._at += 1
        self._take(following)

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Refused("unbalanced-quote", self._at, "a single quote is never closed")
        self.value.append(self._text[self._at + 1 : end])
        self._at = end + 1

    def _double(self) -> None:
        opened = self._at
        self._at += 1
        while (char := self._text[self._at : self._at + 1]) != '"':
            if not char:
                raise Refused("unbalanced-quote", opened, "a double quote is never closed")
            self._in_double(char)
        self._at += 1

    def _in_double(self, char: str) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if char == "\\" and following in {"$", "`", '"', "\\", "\n", ""}:
            self._escape()
        elif char == "$":
            self._dollar(quoted=True)
        elif char == "`":
            self._backtick()
        else:
            self._take(char)

    def _dollar(self, *, quoted: bool) -> None:
        parameter = _PARAMETER.match(self._text, self._at)
        if parameter:
            self.found.add(Expansion.VARIABLE)
            self.value.append(parameter.group())
            self._at = parameter.end()
            return
        for opening, construct, reason in _DOLLAR if quoted else (*_DOLLAR, *_DOLLAR_QUOTES):
            if self._text.startswith(opening, self._at):
                raise Refused(construct, self._at, reason)
        following = self._text[self._at + 1 : self._at + 2]
        if following and (following in "@*#-$!0123456789" or not following.isascii()):
            raise Refused("special-parameter", self._at, f"`${following}` is not judged")
        self._take("$")

    def _backtick(self) -> NoReturn:
        raise Refused("command-substitution", self._at, "a command substitution runs another command")

    def _no_continuation(self, following: str) -> None:
        if following in {"\n", ""}:
            raise Refused(
                "line-continuation", self._at, "a backslash at the end of a line joins what looks apart"
            )

    def _take(self, char: str) -> None:
        self.value.append(char)
        self._at += 1


def _opened(text: str, at: int) -> Refused:
    before = text[at - 1]
    if before == "=":
        return Refused("array-assignment", at, "an array assignment is not judged")
    if before in "?*+@!":
        return Refused("extglob", at, "an extended glob is not judged")
    return Refused("function", at, "a function definition gives a name another meaning")


def _harmless_redirection(descriptor: str, operator: str, target: Word) -> tuple[str, ...] | None:
    to_null = target.literal and target.value == _NULL
    if operator == ">&" and target.source in {"1", "2"} and descriptor in {"", "1", "2"}:
        return (f"{descriptor.replace('1', '')}>&{target.source}",)
    if operator == ">" and to_null and descriptor in {"", "1", "2"}:
        return (f"{descriptor.replace('1', '')}>{_NULL}",)
    if operator == "<" and to_null and descriptor in {"", "0"}:
        return (f"<{_NULL}",)
    if operator == "&>" and to_null and not descriptor:
        return (f">{_NULL}", "2>&1")
    return None


def _why_harmful(operator: str, target: Word) -> str:
    if target.literal and target.value == _NULL:
        return f"is not judged in this form; write >, 2>, &> or < before {_NULL}"
    if operator in {">&", "<&"} and _DESCRIPTOR.fullmatch(target.source):
        return "copies or closes a descriptor; only 2>&1 and >&2 are judged"
    return f"redirects to or from something other than {_NULL}"
