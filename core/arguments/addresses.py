"""Addresses that are never connected to unless a rule names them, and why."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

from core.config.web import HostPattern, Network
from core.model.hosts import Address, Host, plain


@dataclass(frozen=True, slots=True)
class Special:
    """A range of addresses that do not belong to the public internet.

    `lifted_by` a name: whether an allow entry that is exactly the host's name opens the range; else only an
    entry does that names the range, a part of it or the address.
    """

    network: Network
    reason: str
    lifted_by: Literal["any name", "localhost", "address"] = "address"


def _ranges() -> tuple[Special, ...]:
    clouds = "is where clouds keep credentials"
    rows: tuple[tuple[str, str, Literal["any name", "localhost", "address"]], ...] = (
        ("169.254.169.254", f"link-local: 169.254.169.254 {clouds}", "address"),
        ("169.254.170.2", f"link-local: 169.254.170.2 {clouds}", "address"),
        ("169.254.170.23", f"link-local: 169.254.170.23 {clouds}", "address"),
        ("100.100.100.200", f"carrier-grade NAT: 100.100.100.200 {clouds}", "address"),
        ("192.0.0.192", f"reserved: 192.0.0.192 {clouds}", "address"),
        ("168.63.129.16", "cloud metadata: 168.63.129.16 serves the cloud's own agents", "address"),
        ("fd00:ec2::254", f"unique local: fd00:ec2::254 {clouds}", "address"),
        ("fd20:ce::254", f"unique local: fd20:ce::254 {clouds}", "address"),
        ("0.0.0.0/32", "unspecified: it leads to this machine", "address"),
        ("255.255.255.255", "broadcast: every machine of the network", "address"),
        ("0.0.0.0/8", "reserved: this network", "address"),
        ("10.0.0.0/8", "private (RFC 1918)", "any name"),
        ("100.64.0.0/10", "carrier-grade NAT (RFC 6598)", "any name"),
        ("127.0.0.0/8", "loopback: this machine", "localhost"),
        ("169.254.0.0/16", "link-local", "address"),
        ("172.16.0.0/12", "private (RFC 1918)", "any name"),
        ("192.0.0.0/24", "reserved for protocols", "address"),
        ("192.0.2.0/24", "documentation", "address"),
        ("192.88.99.0/24", "reserved: former 6to4 relays", "address"),
        ("192.168.0.0/16", "private (RFC 1918)", "any name"),
        ("198.18.0.0/15", "reserved for benchmarks", "address"),
        ("198.51.100.0/24", "documentation", "address"),
        ("203.0.113.0/24", "documentation", "address"),
        ("224.0.0.0/4", "multicast", "address"),
        ("240.0.0.0/4", "reserved", "address"),
        ("::", "unspecified: it leads to this machine", "address"),
        ("::1", "loopback: this machine", "localhost"),
        ("::/96", "reserved: former IPv4-compatible addresses", "address"),
        ("::ffff:0:0:0/96", "translated: IPv4 behind a translator", "address"),
        ("64:ff9b:1::/48", "translated: NAT64 of a local network", "address"),
        ("100::/64", "reserved: discarded", "address"),
        ("2001::/32", "translated: Teredo tunnels", "address"),
        ("2001::/23", "reserved for protocols", "address"),
        ("2002::/16", "translated: 6to4", "address"),
        ("2001:db8::/32", "documentation", "address"),
        ("3fff::/20", "documentation", "address"),
        ("5f00::/16", "reserved for segment routing", "address"),
        ("fc00::/7", "unique local (RFC 4193)", "any name"),
        ("fe80::/10", "link-local", "address"),
        ("fec0::/10", "site-local", "address"),
        ("ff00::/8", "multicast", "address"),
    )
    specials = (Special(ipaddress.ip_network(text), reason, lifted) for text, reason, lifted in rows)
    return tuple(sorted(specials, key=lambda special: -special.network.prefixlen))


_SPECIAL = {
    version: tuple(special for special in _ranges() if special.network.version == version)
    for version in (4, 6)
}
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LAST_32 = (1 << 32) - 1
# Interface identifiers under which ISATAP hides an IPv4 address.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


def readings(address: Address) -> tuple[Address, ...]:
    """Give the addresses that an address stands for: itself, and the IPv4 address that it carries."""
    address = plain(address)
    carried = _carried(address) if isinstance(address, ipaddress.IPv6Address) else None
    return (address, carried) if carried else (address,)


def special(address: Address) -> Special | None:
    """Tell why an address is not connected to unless it is named; None for a public one."""
    address, *carried = readings(address)
    if found := _found(address):
        return found
    inner = next(filter(None, map(_found, carried)), None)
    if inner is not None:
        return Special(_alone(address), f"translated: it carries {carried[0]}, {inner.reason}")
    if _public(address):
        return None
    return Special(_alone(address), "not an address of the public internet")


def lifted(block: Special, address: Address, host: Host, allowed: HostPattern) -> bool:
    """Tell whether an allow entry means a blocked address: its range or a part of it, or the very name.

    A wider range (`0.0.0.0/0`) and a wildcard lift nothing: whoever wrote them did not mean these.
    """
    if allowed.network is not None:
        return allowed.holds(address) and _within(allowed.network, block.network)
    if allowed.any_host or allowed.subdomains or not allowed.names(host):
        return False
    if block.lifted_by == "localhost":
        return host.text == "localhost" or host.text.endswith(".localhost")
    return block.lifted_by == "any name"


def _public(address: Address) -> bool:
    """Ask the standard library too: it may know ranges that are set apart later."""
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        return True
    unicast = isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_UNICAST
    return unicast and address.is_global and not address.is_multicast


def _found(address: Address) -> Special | None:
    return next((known for known in _SPECIAL[address.version] if address in known.network), None)


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (int(address) >> 32) & _LAST_32 in _ISATAP:
        return ipaddress.IPv4Address(int(address) & _LAST_32)
    return None


def _alone(address: Address) -> Network:
    return ipaddress.ip_network((address, address.max_prefixlen))


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False
