"""Finds out whose the other end of a TCP connection is, where it is on this machine."""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

_TABLES = {4: "/proc/net/tcp", 6: "/proc/net/tcp6"}
_MAPPED = b"\0" * 10 + b"\xff" * 2
_UID, _INODE = 6, 8  # of the columns that begin with the two ends
# linux/rtnetlink.h; Python names none of it.
_RTM_NEWROUTE, _RTM_GETROUTE, _RTA_DST, _RTN_LOCAL, _NLM_F_REQUEST = 24, 26, 1, 2, 1
_NETLINK_ROUTE = 0

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who made a socket, and which it is; `inode` is 0 where it is closed and the kernel alone goes on."""

    uid: int
    inode: int


def owner_of(theirs: Address, ours: Address) -> Owner | None:
    """Return whose the end at `theirs` is of the connection to `ours`; None where no such end is here.

    Both ends are compared, because several connections to different places can go out from one port.
    """
    for version, row in _rows(theirs, ours):
        try:
            table = Path(_TABLES[version]).read_bytes()
        except FileNotFoundError:  # a kernel without IPv6
            continue
        at = table.find(row)
        if at >= 0:
            columns = table[at + 1 : table.find(b"\n", at)].split()
            return Owner(int(columns[_UID]), int(columns[_INODE]))
    return None


def is_own(address: str) -> bool:
    """Tell whether an address is one of this machine; in doubt it is."""
    sought = ip_address(_plain(address))
    family = socket.AF_INET6 if sought.version == 6 else socket.AF_INET  # noqa: PLR2004 - the version of IP
    route = struct.pack("=8BI", family, sought.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    wanted = struct.pack("=HH", 4 + len(sought.packed), _RTA_DST) + sought.packed
    head = struct.pack("=IHHII", 16 + len(route) + len(wanted), _RTM_GETROUTE, _NLM_F_REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
            kernel.sendto(head + route + wanted, (0, 0))
            answer = kernel.recv(4096)
    except OSError:
        return True
    # An address to which no way leads is answered with an error.
    return struct.unpack_from("=H", answer, 4)[0] == _RTM_NEWROUTE and answer[16 + 7] == _RTN_LOCAL


def _rows(theirs: Address, ours: Address) -> list[tuple[int, bytes]]:
    """Give how the row begins behind its number, for each table that it can be in."""
    ends = [(ip_address(_plain(host)), port) for host, port in (theirs, ours)]
    wide = [(ip.packed if isinstance(ip, IPv6Address) else _MAPPED + ip.packed, port) for ip, port in ends]
    rows = [(6, _row(wide))]
    if all(ip.version == 4 for ip, _ in ends):  # noqa: PLR2004 - the version of IP
        rows.insert(0, (4, _row([(ip.packed, port) for ip, port in ends])))
    return rows


def _row(ends: list[tuple[bytes, int]]) -> bytes:
    return f": {' '.join(f'{_hex(packed)}:{port:04X}' for packed, port in ends)} ".encode()


def _hex(packed: bytes) -> str:
    """Write an address as the kernel does: words of four bytes, each as a number of this machine."""
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _plain(address: str) -> str:
    """Write an IPv4 address as one wherever it comes as IPv6, and leave the interface out."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
