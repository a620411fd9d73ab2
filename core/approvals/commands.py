"""Commands that people type in chats, read once for every platform."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from core.display import duration, elide, safe
from core.model.elevation import Level
from core.model.session import SessionKey
from core.model.standing import LONGEST_MS, SHORTEST_MS

HELP = """\
/pending: what waits for an answer
/approve ID: allow it once
/approve ID for 30m: allow it, and the same again for that time (30s, 30m, 2h, 1d)
/approve ID always: allow it, and remember it where that is offered
/approve ID always any: remember it with any arguments, where that is offered
/deny ID [reason]: do not allow it
/deny ID always [reason]: do not allow it, now or later
/elevated: see where commands of this chat's session run, and who is asked
/elevated on|ask|full|off [for 30m] [SESSION]: set that
/elevated on please restart it: for the next command alone
/sayso bind SESSION: the session that this chat means
/sayso status: what is going on
/sayso lock: stop everything; only the operator unlocks, on the machine itself
/pair CODE: connect this chat, with a code from the operator
ID is what the question shows, at least its first 8 characters."""


class How(StrEnum):
    """How long a yes holds."""

    ONCE = "once"
    ALWAYS = "always"
    ALWAYS_ANY = "always any"
    FOR = "for"


@dataclass(frozen=True, slots=True)
class Approve:
    """`/approve`; `id` is a full id or its beginning, `for_ms` is set exactly where `how` is `FOR`."""

    id: str
    how: How = How.ONCE
    for_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """`/deny`, or `/approve … deny`; the reason is safe to show."""

    id: str
    always: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """`/pending`."""


@dataclass(frozen=True, slots=True)
class Elevated:
    """`/elevated` or `/elev`; without a level it asks how things stand, without a session in this chat's.

    `once` is for a message that says more than that: it counts for the next command alone.
    """

    level: Level | None = None
    for_ms: int | None = None
    session: SessionKey | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class SaysoBind:
    """`/sayso bind`: the session is the one that this chat means from then on."""

    session: SessionKey


@dataclass(frozen=True, slots=True)
class SaysoStatus:
    """`/sayso status`."""


@dataclass(frozen=True, slots=True)
class SaysoLock:
    """`/sayso lock`."""


@dataclass(frozen=True, slots=True)
class SaysoUnlock:
    """`/sayso unlock`, which no chat may do; it is read so that the refusal can say so."""


@dataclass(frozen=True, slots=True)
class SaysoHelp:
    """`/sayso help`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`/pair`; the code is a secret until it is used."""

    code: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """One of our commands, written wrong; the text says what is wrong and how to write it."""

    text: str


Command: TypeAlias = (
    Approve
    | Deny
    | Pending
    | Elevated
    | SaysoBind
    | SaysoStatus
    | SaysoLock
    | SaysoUnlock
    | SaysoHelp
    | Pair
    | Malformed
)

_HEAD = re.compile(r"/([A-Za-z]+)(?:@([A-Za-z0-9_]{1,64}))?(?=[ \t\r\n]|\Z)")
_BLANKS = re.compile(r"[ \t]+")
_LAYOUT = re.compile(r"[ \t\r\n]+")
_ID = re.compile(r"[0-9a-f][0-9a-f-]{7,35}")
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_CODE = re.compile(r"[A-Za-z0-9_-]{8,64}")
_UNIT_MS = MappingProxyType({"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000})
_HOW = MappingProxyType(
    {
        "once": How.ONCE,
        "allow-once": How.ONCE,
        "always": How.ALWAYS,
        "allow-always": How.ALWAYS,
        "allow-always-any": How.ALWAYS_ANY,
        "for": How.FOR,
    }
)
_REASON_HEAD, _REASON_TAIL = 400, 100
_ECHOED = 40

_APPROVE_FORM = (
    "Write /approve ID, /approve ID always, /approve ID always any (with any arguments, where that is "
    "offered), /approve ID for 30m or /approve ID deny."
)
_DENY_FORM = "Write /deny ID, with a reason after it if you like."
_ELEVATED_FORM = (
    "Write /elevated on, ask, full or off; `for 30m` and a session key may follow. "
    "With a message of several words after it, it counts for the next command alone."
)
_SAYSO_FORM = "Write /sayso status, /sayso lock, /sayso bind SESSION or /sayso help."
_PAIR_FORM = "Write /pair and the code that the operator gave you."


class _FormError(ValueError):
    """What is wrong with a command, in a sentence."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The words of the first line, and what comes after it; only a reason may go on there."""

    words: tuple[str, ...]
    below: str

    def words_alone(self) -> list[str]:
        if self.below:
            raise _FormError("This command is one line.")
        return list(self.words)


def parse(text: str, *, bot: str | None = None) -> Command | None:
    """Read a chat message; None where it is no command, another program's, or addressed to another bot.

    `bot` is our own name where the platform lets commands be addressed (`/approve@sayso_bot`).
    """
    text = text.strip(" \t\r\n")
    head = _HEAD.match(text)
    if head is None:
        return None
    name, addressee = head[1].lower(), head[2]
    if name not in _READERS or not _addressed(addressee, bot):
        return None
    reader, form = _READERS[name]
    try:
        return reader(_arguments(text[head.end() :]))
    except _FormError as fault:
        return Malformed(f"{fault} {form}")


def _addressed(addressee: str | None, bot: str | None) -> bool:
    if addressee is None:
        return True
    return bot is not None and addressee.lower() == bot.removeprefix("@").lower()


def _arguments(text: str) -> _Arguments:
    line, _, below = text.partition("\n")
    return _Arguments(
        tuple(word for word in _BLANKS.split(line.rstrip("\r")) if word), below.strip(" \t\r\n")
    )


def _approve(arguments: _Arguments) -> Command:
    words = list(arguments.words)
    found: str | None = None
    how: How | None = None
    for_ms: int | None = None
    while words:
        word = words.pop(0)
        low = _low(word)
        if found is None and _ID.fullmatch(low):
            found = low
        elif how is None and low in _HOW:
            how = _HOW[low]
            for_ms = _duration(words) if how is How.FOR else None
        elif how is How.ALWAYS and low == "any":
            how = How.ALWAYS_ANY
        elif how is None and low in ("deny", "deny-always"):
            return _denial(words, arguments.below, found, always=low == "deny-always")
        else:
            raise _unexpected(word)
    if arguments.below:
        raise _FormError("An approval is one line.")
    return Approve(_present(found), how or How.ONCE, for_ms)


def _deny(arguments: _Arguments) -> Command:
    return _denial(list(arguments.words), arguments.below, None, always=False)


def _denial(words: list[str], below: str, found: str | None, *, always: bool) -> Deny:
    while words:
        low = _low(words[0])
        if found is None and _ID.fullmatch(low):
            found = low
        elif not always and low == "always":
            always = True
        else:
            break
        words.pop(0)
    if found is None and words:
        raise _unexpected(words[0])
    return Deny(_present(found), always, reason(" ".join(words) + "\n" + below))


def _pending(arguments: _Arguments) -> Command:
    _nothing_more(arguments.words_alone())
    return Pending()


def _elevated(arguments: _Arguments) -> Command:
    words = list(arguments.words)
    level: Level | None = None
    for_ms: int | None = None
    session: SessionKey | None = None
    while words:
        word = words.pop(0)
        low = _low(word)
        if level is None and low in list(Level):
            level = Level(low)
        elif for_ms is None and low == "for":
            for_ms = _duration(words)
        elif session is None and word.lower().startswith("agent:"):
            session = _session(word)
        elif level is None or for_ms is not None or session is not None or not (words or arguments.below):
            raise _unexpected(word)
        else:
            return Elevated(level, once=True)
    if arguments.below:
        return _directive(level, for_ms, session)
    if for_ms is not None and level in (None, Level.OFF):
        raise _FormError("A time goes with on, ask or full only.")
    return Elevated(level, for_ms, session)


def _directive(level: Level | None, for_ms: int | None, session: SessionKey | None) -> Elevated:
    if level is None or for_ms is not None or session is not None:
        raise _FormError("With more text below it, this counts once, and takes a level alone.")
    return Elevated(level, once=True)


def _sayso(arguments: _Arguments) -> Command:
    words = arguments.words_alone()
    word = words.pop(0) if words else "help"
    if _low(word) == "bind":
        return _bind(words)
    command = _SAYSO.get(_low(word))
    if command is None:
        raise _unexpected(word)
    _nothing_more(words)
    return command


def _bind(words: list[str]) -> Command:
    if len(words) != 1:
        raise _FormError("Name the session that this chat means, as in /sayso bind agent:main:main.")
    return SaysoBind(_session(words[0]))


def _pair(arguments: _Arguments) -> Command:
    # The words are not repeated back: a code typed wrong in a group is still almost the code.
    words = arguments.words_alone()
    if len(words) != 1 or not _CODE.fullmatch(words[0]):
        raise _FormError("This is not a pairing code.")
    return Pair(words[0])


def _low(word: str) -> str:
    # Other scripts have letters whose lower case is an ASCII one; they are not ours.
    return word.lower() if word.isascii() else ""


def _duration(words: list[str]) -> int:
    return duration_ms(words.pop(0) if words else "")


def duration_ms(word: str) -> int:
    """Read a time such as 30m; raises ValueError with a sentence that names the value and the rule."""
    found = _DURATION.fullmatch(_low(word))
    if found is None:
        raise _FormError(f"`for` needs a time such as 30s, 30m, 2h or 1d{_after_it(word)}.")
    ms = int(found[1]) * _UNIT_MS[found[2]]
    if not SHORTEST_MS <= ms <= LONGEST_MS:
        raise _FormError(f"{word} is out of bounds: {duration(SHORTEST_MS)} to {duration(LONGEST_MS)}.")
    return ms


def _session(word: str) -> SessionKey:
    try:
        return SessionKey.parse(word)
    except ValueError:
        raise _FormError(
            f"{_echo(word)} is no session key, which is agent:NAME:main or agent:NAME:CHANNEL:PEER."
        ) from None


def _present(found: str | None) -> str:
    if found is None:
        raise _FormError("The id of the question is missing; /pending lists them.")
    return found


def _nothing_more(words: list[str]) -> None:
    if words:
        raise _unexpected(words[0])


def _unexpected(word: str) -> _FormError:
    if re.fullmatch(r"[0-9a-f-]{1,7}", _low(word)) and any(map(str.isdigit, word)):
        return _FormError(f"{_echo(word)} is too short for an id: it takes at least 8 characters.")
    return _FormError(f"{_echo(word)} does not belong here.")


def _after_it(word: str) -> str:
    return f", not {_echo(word)}" if word else " after it"


def _echo(word: str) -> str:
    return f"“{safe(elide(word, head=_ECHOED, tail=0).text.rstrip())}”"


def reason(text: str) -> str | None:
    """Make one safe line of a reason that somebody typed; None where nothing is left of it."""
    plain = _LAYOUT.sub(" ", text).strip(" ")
    return safe(elide(plain, head=_REASON_HEAD, tail=_REASON_TAIL).text) or None


_SAYSO: MappingProxyType[str, Command] = MappingProxyType(
    {"status": SaysoStatus(), "lock": SaysoLock(), "unlock": SaysoUnlock(), "help": SaysoHelp()}
)

_READERS: MappingProxyType[str, tuple[Callable[[_Arguments], Command], str]] = MappingProxyType(
    {
        "approve": (_approve, _APPROVE_FORM),
        "deny": (_deny, _DENY_FORM),
        "pending": (_pending, "Write /pending alone."),
        "elevated": (_elevated, _ELEVATED_FORM),
        "elev": (_elevated, _ELEVATED_FORM),
        "sayso": (_sayso, _SAYSO_FORM),
        "pair": (_pair, _PAIR_FORM),
    }
)
