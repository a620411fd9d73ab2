"""Can the people who must agree be asked at all? What of `people` and `required` cannot work as written."""

from __future__ import annotations

from collections.abc import Iterator

from core.approvals.quorum import COMMAND_LINE, PAGE_LOGIN, Identity, People, identity
from core.approvals.routes import LOCAL_CHANNELS, TERMINAL, WEB
from core.config import Config
from core.elevated.senders import SenderField, parse


def people_doubts(config: Config) -> Iterator[str]:
    """Yield a sentence for each id under `people` that does not tell who answers, with its path first."""
    yield from _ids_of_nobody(config)
    yield from _shared_operator(config)
    yield from _page_of_nobody(config)


def quorum_doubts(config: Config) -> Iterator[str]:
    """Yield a sentence for each number of people that cannot be reached as written, with its path first."""
    people = People.named(config.people)
    able = {person for at, person in people.by_id.items() if _can_be_asked(config, at)}
    for path, required in _quorums(config):
        if required > max(1, len(able)):
            yield (
                f"{path}: {required} different people must say yes, and {_who_could(able)}; unless sayso "
                "pair lets in others of them, what is asked there is denied"
            )


def _who_could(able: set[str]) -> str:
    if not able:
        return "nobody under people could: nobody's channel is on with an approver that names them"
    named = ", ".join(sorted(able))
    return f"of those under people only {named} could, because their channel is on and an approver names them"


def _quorums(config: Config) -> Iterator[tuple[str, int]]:
    settings = config.approvals.exec
    yield "approvals.exec.required", settings.required
    for index, target in enumerate(settings.targets):
        if (target.required or 1) > settings.required:
            yield f"approvals.exec.targets[{index}].required", target.required or 1


def _can_be_asked(config: Config, at: Identity) -> bool:
    channel, identifier = at
    if channel == COMMAND_LINE:
        return config.operator.local != "off"
    if channel == WEB:
        return config.channels.web.enabled and identifier == PAGE_LOGIN
    if channel == TERMINAL:
        return config.channels.terminal.enabled != "never"
    settings = getattr(config.channels, channel, None)
    return settings is not None and settings.enabled and _is_approver(config, channel, identifier)


def _is_approver(config: Config, channel: str, identifier: str) -> bool:
    """Tell whether an approver could mean this id; who was let in by a code is not known here."""
    exec_ = config.approvals.exec
    patterns = (*exec_.approvers, *(text for target in exec_.targets for text in target.approvers))
    return any(_could_mean(text, channel, identifier) for text in patterns)


def _could_mean(text: str, channel: str, identifier: str) -> bool:
    try:
        pattern = parse(text)
    except ValueError:
        return False
    if pattern.channel not in (None, channel):
        return False
    return pattern.field is not SenderField.ID or pattern.value == identifier


def _ids_of_nobody(config: Config) -> Iterator[str]:
    for person, texts in config.people.items():
        for index, text in enumerate(texts):
            channel, identifier = identity(text) or ("", "")
            if channel == WEB and identifier != PAGE_LOGIN:
                yield f"people.{person}[{index}]: {text!r} names nobody: the page is web:{PAGE_LOGIN}"


def _page_of_nobody(config: Config) -> Iterator[str]:
    """Warn that the page cannot allow what chats ask, since its operator may be who speaks there."""
    known = People.named(config.people).person(WEB, PAGE_LOGIN)
    if config.approvals.exec.separation_of_duties and config.channels.web.enabled and known is None:
        yield (
            f"approvals.exec.separationOfDuties: web:{PAGE_LOGIN} is nobody's under people, so the page may "
            "be that of whoever asks, and cannot allow what chats ask; write whose it is"
        )


def _shared_operator(config: Config) -> Iterator[str]:
    """Warn where one operator could answer as two people: who has the command line can open the page."""
    people = People.named(config.people)
    page = people.person(WEB, PAGE_LOGIN)
    local = {who for at, who in people.by_id.items() if at[0] in (COMMAND_LINE, *LOCAL_CHANNELS)}
    others = sorted(local - {page})
    if page is not None and others:
        yield (
            f"people: web:{PAGE_LOGIN} is {page}'s, but {', '.join(others)} can make a login link and answer "
            f"there as {page}; give web:{PAGE_LOGIN} to one who alone has the command line, or to nobody"
        )
