"""A strict reader of URLs: what browsers, curl and libraries would read differently is refused."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.config.web import DEFAULT_PORTS
from core.display import safe
from core.model.hosts import Host, read_host

_LONGEST = 8_192
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_AUTHORITY = re.compile(r"//(?P<authority>[^/?#]*)(?P<tail>.*)", re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_HIGHEST_PORT = 65_535
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads: canonical scheme, host and port."""

    scheme: str
    host: Host
    port: int

    @property
    def origin(self) -> str:
        """The origin as browsers write it: no default port."""
        return self.origin_with(str(self.host))

    def origin_with(self, host: str) -> str:
        """Write the origin of another host under the same scheme and port."""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text is not accepted as a URL."""

    reason: str


def read_url(text: str) -> Target | Refusal:
    """Read an absolute http or https URL."""
    try:
        return _read(text)
    except ValueError as fault:
        return Refusal(str(fault))


def _read(text: str) -> Target:
    _only_plain_characters(text)
    form = _SCHEME.fullmatch(text)
    if form is None:
        raise ValueError("it is not absolute; begin it with https:// or http://")
    scheme = form["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"its scheme is {safe(scheme[:20])}:; only https: and http: lead to the web")
    parts = _AUTHORITY.fullmatch(form["rest"])
    if parts is None:
        raise ValueError(f"{scheme}: must be followed by exactly two slashes and the host")
    _no_user(parts["authority"], parts["tail"])
    host, port = _split(parts["authority"])
    return Target(scheme, read_host(host), DEFAULT_PORTS[scheme] if port is None else _port(port))


def _only_plain_characters(text: str) -> None:
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text):,} characters; at most {_LONGEST:,} are read")
    if "\\" in text:
        raise ValueError("it has a backslash, which some programs read as a slash; write / or %5C")
    for char in text:
        if unicodedata.category(char) in _HIDDEN:
            raise ValueError(f"it has a blank or hidden character (U+{ord(char):04X}); percent-encode it")


def _no_user(authority: str, tail: str) -> None:
    if "@" in authority:
        raise ValueError("it has a user name before @, which passes for the host; leave it out")
    if "@" in tail and not tail.startswith("/"):
        raise ValueError("programs differ on where its host ends; put a slash after the host")


def _split(authority: str) -> tuple[str, str | None]:
    """Split the authority into host and port; the port is None where there is no colon."""
    if authority.startswith("["):
        inside, bracket, after = authority.partition("]")
        if after and not after.startswith(":"):
            raise ValueError("something other than a port follows the bracket")
        return inside + bracket, after[1:] if after else None
    host, colon, port = authority.partition(":")
    if ":" in port:
        raise ValueError("its host has several colons; an IPv6 address belongs in brackets")
    return host, port if colon else None


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > _HIGHEST_PORT:
        raise ValueError(f"its port must be a number from 1 to {_HIGHEST_PORT}, without leading zeros")
    return int(text)
