"""Domains and origins as rules name them: read once at load, compared label by label."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from core.config.section import NonEmpty
from core.model.hosts import Address, Host, HostKind, plain, read_host

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORTS = {"http": 80, "https": 443}
_ANY = "*"
_SUBDOMAINS = "*."
_RANGE = re.compile(r"(?P<first>[0-9A-Fa-f:.]+)/(?P<bits>[0-9]{1,3})")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>\[[^\]]*\]|[^/?#@:]+)(?::(?P<port>[1-9][0-9]{0,4}))?")
_HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`name` (that name alone), `*.name` (its subdomains alone), an address, a range, or `*` (every host).

    `source` is the configuration path of the entry.
    """

    text: str
    source: str = ""
    name: str | None = None
    subdomains: bool = False
    network: Network | None = None

    @classmethod
    def parse(cls, text: str, source: str = "") -> HostPattern:
        """Read an entry; raises ValueError that says what is wrong with it and what to write."""
        if text == _ANY:
            return cls(text, source)
        if (network := _network(text)) is not None:
            return cls(text, source, network=network)
        subdomains = text.startswith(_SUBDOMAINS)
        host = _read(text.removeprefix(_SUBDOMAINS))
        if host.address is not None:
            raise ValueError("has an address after `*.`; write the address alone, or a range")
        return cls(text, source, host.text, subdomains)

    def names(self, host: Host) -> bool:
        """Tell whether the host is meant by its name."""
        if self.network is not None or host.kind is not HostKind.NAME:
            return self.any_host
        if self.name is None:
            return True
        return host.text.endswith(f".{self.name}") if self.subdomains else host.text == self.name

    def holds(self, address: Address) -> bool:
        """Tell whether an address is meant, by itself or by its range."""
        return self.network is not None and plain(address) in self.network

    @property
    def any_host(self) -> bool:
        """Whether this is `*`."""
        return self.text == _ANY


@dataclass(frozen=True, slots=True)
class OriginPattern:
    """`scheme://host[:port]`: exactly this scheme and port, and a host as HostPattern reads it."""

    scheme: str
    host: HostPattern
    port: int

    @classmethod
    def parse(cls, text: str, source: str = "") -> OriginPattern:
        """Read an entry; raises ValueError that says what is wrong with it and what to write."""
        form = _ORIGIN.fullmatch(text)
        if form is None:
            raise ValueError(
                "must be an origin: https://example.com, http://localhost:3000, no path after it"
            )
        port = int(form["port"] or DEFAULT_PORTS[form["scheme"]])
        if port > _HIGHEST_PORT:
            raise ValueError(f"has a port that does not exist; the highest is {_HIGHEST_PORT}")
        return cls(form["scheme"], HostPattern.parse(form["host"], source), port)

    def fits(self, scheme: str, port: int) -> bool:
        """Tell whether scheme and port are the pattern's."""
        return (self.scheme, self.port) == (scheme, port)


def _network(text: str) -> Network | None:
    """Read an address or a range; None for what is neither."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    form = _RANGE.fullmatch(bare)
    try:
        address = ipaddress.ip_address(form["first"] if form else bare)
    except ValueError:
        return None
    if plain(address) != address or "%" in bare:
        raise ValueError("must be the IPv4 address or range itself, and no zone")
    bits = int(form["bits"]) if form else address.max_prefixlen
    try:
        wide = ipaddress.ip_network((address, bits), strict=False)
    except ValueError:
        raise ValueError(f"must be a range of at most {address.max_prefixlen} bits") from None
    if wide.network_address != address:
        raise ValueError(f"is a range that begins elsewhere; write {wide} for all of it")
    return wide


def _read(text: str) -> Host:
    if "://" in text or "/" in text:
        raise ValueError(
            "must be a name, an address or a range, without scheme and path: github.com, 10.0.0.0/8"
        )
    if "*" in text:
        raise ValueError("has `*` where it means nothing; it stands alone or first: `*.github.com`")
    if ":" in text:
        raise ValueError("has a colon but is no IPv6 address; a port cannot be given here")
    try:
        return read_host(text)
    except ValueError as fault:
        raise ValueError(f"names no host: {fault}") from None


def _domain(text: str) -> str:
    HostPattern.parse(text)
    return text


def _origin(text: str) -> str:
    OriginPattern.parse(text)
    return text


Domain = Annotated[NonEmpty, AfterValidator(_domain)]
Origin = Annotated[NonEmpty, AfterValidator(_origin)]
