"""Who asks and who decides: authenticated parties, never what a text claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NewType

AgentId = NewType("AgentId", str)


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """What the kernel says of the process at the other end of a Unix socket."""

    pid: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Claims:
    """What an agent says about itself; it can only tighten what applies."""

    provider: str | None = None
    model: str | None = None
    depth: int = 0
    sandboxed: bool = False


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A person who decides: channel, the platform's stable id, and a name to show.

    `person` is what the configuration calls whoever has this id (`people`), None where it calls nobody so.
    """

    channel: str
    id: str
    name: str
    person: str | None = None

    def __str__(self) -> str:
        return f"{self.person or self.name} ({self.channel}:{self.id})"


def named(reviewers: Iterable[Reviewer]) -> str:
    """Name people in one phrase, each with the id that decided."""
    *others, last = ("", *map(str, reviewers))
    return " and ".join(filter(None, (", ".join(filter(None, others)), last)))


@dataclass(frozen=True, slots=True)
class Sender:
    """A user as the platform names it; only `id` is stable, the rest may be changed by the user at will.

    `tag` is `username#discriminator`, `address` an e-mail or similar address, `phone` in E.164 form.
    """

    channel: str
    id: str
    name: str = ""
    username: str | None = None
    tag: str | None = None
    address: str | None = None
    phone: str | None = None
