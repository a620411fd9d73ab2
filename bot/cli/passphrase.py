"""`sayso operator unlock|forget|passphrase`: what proves on this machine that it is you."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.cli import exits
from bot.cli.operator import PROMPT, ask, connected
from bot.cli.parser import Parser, verb
from bot.cli.secret_prompt import secret
from bot.cli.terminal import left, put_json, shown
from bot.client import NOT_PERMITTED, Refused, home
from bot.home import AnotherDaemon, Home, held, prepare
from bot.passphrase import PassphraseFile
from core.errors import StartError
from core.passphrase.rules import SHORTEST, fault_of

_IN_A_TERMINAL = exits.UsageError(
    "operator: a passphrase is typed on a terminal and comes from nowhere else; run it in one", "operator"
)
_NOT_ASKED = "operator.local is not passphrase, so no passphrase is asked for"
_EACH_TIME = "this is the passphrase; it is asked for each time, because operator.rememberFor is 0"
_SET = "the passphrase is set; it is asked for where operator.local is passphrase"


_VERBS = {
    "unlock": "give the passphrase, for this terminal and a time",
    "forget": "have it asked for again, in every terminal",
    "passphrase": "set it, or change it",
}


def operator_command(arguments: list[str]) -> int:
    """Give, forget or set the operator's passphrase."""
    which, rest = verb("operator", arguments, "The operator's passphrase.", _VERBS)
    return {"unlock": _unlock, "forget": _forget, "passphrase": _set}[which](rest)


def _unlock(arguments: list[str]) -> int:
    parser = Parser("operator unlock", "Give the passphrase, for this terminal and a time.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    with connected() as client:
        answer: dict[str, Any] = {}
        if client.greeting.get("passphrase") is not None:
            answer = client.call("operator.unlock", {"passphrase": secret(PROMPT, _IN_A_TERMINAL)})
    if options.json:
        put_json(answer)
    else:
        print(_standing(answer))
    return exits.OK


def _standing(answer: dict[str, Any]) -> str:
    if not answer:
        return _NOT_ASKED
    until = answer.get("rememberedUntil")
    return f"this terminal is the operator's, {left(until)}" if until else _EACH_TIME


def _forget(arguments: list[str]) -> int:
    parser = Parser("operator forget", "Ask for the passphrase again, in every terminal.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    answer = ask("operator.forget")
    if options.json:
        put_json(answer)
    else:
        print(shown(answer["text"]))
    return exits.OK


def _set(arguments: list[str]) -> int:
    Parser("operator passphrase", "Set the operator's passphrase, or change it.").parse_args(arguments)
    try:
        place = prepare(Path(home()))
        old = _until_now(place) if _is_there(place.passphrase) else None
        print(_put(place, old, _chosen()))
    except StartError as error:
        raise exits.BadConfiguration(str(error)) from None
    return exits.OK


def _until_now(place: Home) -> str:
    """Ask for the passphrase that counts, before a new one is thought of; raises Refused for another."""
    old = secret("The passphrase until now: ", _IN_A_TERMINAL)
    file = PassphraseFile(place.passphrase)
    try:
        with held(place):
            _check(file, file.load(), old)
    except AnotherDaemon:
        with connected() as client:
            if client.greeting.get("passphrase") is None:  # it asks for none, so it keeps none
                _check(file, file.load(), old)
            else:
                client.call("operator.unlock", {"passphrase": old})
    return old


def _check(file: PassphraseFile, kept: str | None, old: str | None) -> None:
    if kept is not None and (old is None or not file.matches(kept, old)):
        raise Refused(NOT_PERMITTED, "this is not the passphrase until now; nothing was changed")


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _chosen() -> str:
    new = secret(f"New passphrase, {SHORTEST} characters or more: ", _IN_A_TERMINAL)
    if fault := fault_of(new):
        raise exits.UsageError(f"operator passphrase: {fault}; nothing was changed", "operator")
    if secret("The same again: ", _IN_A_TERMINAL) != new:
        raise exits.UsageError("operator passphrase: the two differ; nothing was changed", "operator")
    return new


def _put(place: Home, old: str | None, new: str) -> str:
    """Write it while no daemon can start, or where one runs let that do it: it knows which one counts."""
    try:
        with held(place):
            return _write(PassphraseFile(place.passphrase), old, new)
    except AnotherDaemon:
        return str(shown(ask("operator.passphrase.set", passphrase=new, old=old)["text"]))


def _write(file: PassphraseFile, old: str | None, new: str) -> str:
    _check(file, file.load(), old)
    file.keep(new)
    return _SET
