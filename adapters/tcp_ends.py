"""Finds out whose the other end of a TCP connection is, where it is on this machine."""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_TABLES = {4: "/proc/net/tcp", 6: "/proc/net/tcp6"}
_MAPPED = b"\0" * 10 + b"\xff" * 2
_UID, _INODE = 6, 8  # of the columns that begin with the two ends
# linux/rtnetlink.h; Python names none of it.
_RTM_NEWROUTE, _RTM_GETROUTE, _RTA_DST, _RTN_LOCAL, _NLM_F_REQUEST = 24, 26, 1, 2, 1
_NETLINK_ROUTE, _NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLMSG_ERROR = 0, 4, 20, 2
_HEAD = struct.Struct("=IHHII")  # struct nlmsghdr: length, kind, flags, number, port
_ASKED = struct.Struct("=BB2xI")  # the beginning of struct inet_diag_req_v2
_ANY_INTERFACE_AND_COOKIE = b"\0" * 4 + b"\xff" * 8
_OWNER = struct.Struct("=II")  # uid and inode, in struct inet_diag_msg
_OWNER_AT = 4 + 48 + 12
_ALL_STATES = 0xFFFFFFFF
_NO_WAY = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH))

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
    try:
        return _owner_by_kernel(theirs, ours)
    except OSError:  # a kernel that answers no such question
        return _owner_by_table(theirs, ours)


def _owner_by_kernel(theirs: Address, ours: Address) -> Owner | None:
    """Ask for the one socket with these ends; raises OSError where nobody answers."""
    ends = [(ip_address(_plain(host)), port) for host, port in (theirs, ours)]
    both = len({ip.version for ip, _ in ends}) == 1
    version = ends[0][0].version if both else 6
    packed = [_wide(ip) if version != ip.version else ip.packed for ip, _ in ends]
    family = socket.AF_INET6 if version == 6 else socket.AF_INET  # noqa: PLR2004 - the version of IP
    ports = struct.pack(">HH", *(port for _, port in ends))
    sought = ports + b"".join(each.ljust(16, b"\0") for each in packed) + _ANY_INTERFACE_AND_COOKIE
    answer = _asked(
        _NETLINK_SOCK_DIAG,
        _SOCK_DIAG_BY_FAMILY,
        _ASKED.pack(family, socket.IPPROTO_TCP, _ALL_STATES) + sought,
    )
    if answer is None:
        return None
    uid, inode = _OWNER.unpack_from(answer, _HEAD.size + _OWNER_AT)
    return Owner(uid, inode)


def _asked(protocol: int, kind: int, body: bytes) -> bytes | None:
    """Put a question to the kernel; None where there is no such thing, OSError where it has no answer."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as kernel:
        kernel.sendto(_HEAD.pack(_HEAD.size + len(body), kind, _NLM_F_REQUEST, 0, 0) + body, (0, 0))
        answer = kernel.recv(8192)
    if _HEAD.unpack_from(answer)[1] != _NLMSG_ERROR:
        return answer
    (error,) = struct.unpack_from("=i", answer, _HEAD.size)
    if -error == errno.ENOENT:
        return None
    raise OSError(-error, os.strerror(-error))


def _owner_by_table(theirs: Address, ours: Address) -> Owner | None:
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
    try:
        answer = _asked(_NETLINK_ROUTE, _RTM_GETROUTE, route + wanted)
    except OSError as error:
        return error.errno not in _NO_WAY
    return (
        answer is not None and _HEAD.unpack_from(answer)[1] == _RTM_NEWROUTE and answer[16 + 7] == _RTN_LOCAL
    )


def _rows(theirs: Address, ours: Address) -> list[tuple[int, bytes]]:
    """Give how the row begins behind its number, for each table that it can be in."""
    ends = [(ip_address(_plain(host)), port) for host, port in (theirs, ours)]
    wide = [(_wide(ip), port) for ip, port in ends]
    rows = [(6, _row(wide))]
    if all(ip.version == 4 for ip, _ in ends):  # noqa: PLR2004 - the version of IP
        rows.insert(0, (4, _row([(ip.packed, port) for ip, port in ends])))
    return rows


def _wide(ip: IPv4Address | IPv6Address) -> bytes:
    return ip.packed if isinstance(ip, IPv6Address) else _MAPPED + ip.packed


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
