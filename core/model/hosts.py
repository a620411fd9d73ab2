"""Hosts as URLs and rules write them, read so strictly that every program reads the same host."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import idna

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LONGEST_NAME = 253
_LONGEST_LABEL = 63
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
# What makes the C library and browsers read a whole host as an IPv4 address, in whatever spelling.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_TO_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class HostKind(StrEnum):
    """What a host is written as."""

    NAME = "name"
    IPV4 = "ipv4"
    IPV6 = "ipv6"


@dataclass(frozen=True, slots=True)
class Host:
    """A host in its one spelling: lower case, punycode, no trailing dot, addresses compressed."""

    kind: HostKind
    text: str
    address: Address | None = None

    def __str__(self) -> str:
        return f"[{self.text}]" if self.kind is HostKind.IPV6 else self.text


def read_host(text: str) -> Host:
    """Read the host of a URL, IPv6 in brackets; raises ValueError that says what is wrong with it."""
    if not text:
        raise ValueError("the host is missing")
    if text.startswith("["):
        return _ipv6(text)
    if "%" in text:
        raise ValueError("a host is never percent-encoded; write the characters themselves")
    folded = text.translate(_TO_LOWER)
    labels = folded.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(folded)
    name = ".".join(_label(label) for label in labels)
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"the host has {len(name)} characters; a name has at most {_LONGEST_NAME}")
    return Host(HostKind.NAME, name)


def plain(address: Address) -> Address:
    """Give the IPv4 address that an IPv4-mapped one is: the kernel connects to that."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _ipv4(text: str) -> Host:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise ValueError(
            "the host ends in a number but is no IPv4 address of four decimal numbers; "
            "programs read short, octal and hexadecimal forms differently"
        ) from None
    return Host(HostKind.IPV4, str(address), address)


def _ipv6(text: str) -> Host:
    if "%" in text:
        raise ValueError("an address with a zone means another machine on each interface")
    try:
        address = ipaddress.IPv6Address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        address = None
    if address is None or not text.endswith("]"):
        raise ValueError("the host in brackets is no IPv6 address")
    return Host(HostKind.IPV6, _compressed(address), address)


def _compressed(address: ipaddress.IPv6Address) -> str:
    """Spell an address with hexadecimal groups alone; Python versions differ on mapped ones."""
    mapped = address.ipv4_mapped
    if mapped is None:
        return str(address)
    high, low = divmod(int(mapped), 1 << 16)
    return f"::ffff:{high:x}:{low:x}"


def _label(label: str) -> str:
    if not label:
        raise ValueError("the host has an empty label: two dots in a row, or one at its beginning")
    if not label.isascii() or label.startswith("xn--"):
        label = _a_label(label)
    if len(label) > _LONGEST_LABEL:
        raise ValueError(f"a label of the host has {len(label)} characters; at most {_LONGEST_LABEL} fit")
    if not _LABEL.fullmatch(label):
        raise ValueError("a label of the host has a character or a hyphen where none may be")
    return label


def _a_label(label: str) -> str:
    """Encode a label that IDNA 2008 allows as it stands, and that IDNA 2003 does not read as another."""
    try:
        encoded = idna.alabel(label).decode("ascii")
    except idna.IDNAError:
        raise ValueError(
            "the host has characters that international names do not have, or that programs replace by others"
        ) from None
    if _older_reading(label) not in {None, encoded}:
        raise ValueError("the host is another one for programs that follow the older rules of IDNA")
    return encoded


def _older_reading(label: str) -> str | None:
    """Give what Python and older programs make of a label; None where they refuse it."""
    try:
        return label.encode("idna").decode("ascii")
    except UnicodeError:
        return None
