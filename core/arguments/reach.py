"""May this host be reached? Lists of hosts, and every address that its name has."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.arguments.addresses import Special, lifted, readings, special
from core.config.web import HostPattern
from core.model.decision import Decision, Effect, Layer
from core.model.hosts import Address, Host, plain
from core.ports import NameResolver


@dataclass(frozen=True, slots=True)
class HostRules:
    """Which hosts a tool may reach; `allowed` None: every public one.

    `tool` names the rules of the answers (`web_fetch.denied`), `allow_path` is the place of the allow list,
    and `entry` the form of its entries (`https://{}:8443`).
    """

    tool: str
    allow_path: str
    allowed: tuple[HostPattern, ...] | None
    denied: tuple[HostPattern, ...]
    entry: str = "{}"


@dataclass(frozen=True, slots=True)
class Reached:
    """What a host leads to: the answer, and the addresses that were judged (none where it is a denial).

    The answer is None where the host's name is refused by no rule and its addresses were not looked up.
    """

    decision: Decision | None
    addresses: tuple[Address, ...] = ()


def reach(host: Host, rules: HostRules, names: NameResolver | None) -> Reached:
    """Judge a host; a name that no answer could admit is not looked up: a look-up gives it away."""
    if early := _by_name(host, rules):
        return Reached(early)
    addresses = _addresses(host, names)
    return Reached(None) if addresses is None else _by_addresses(host, rules, addresses)


def meant(host: Host, addresses: Sequence[Address], patterns: Sequence[HostPattern]) -> HostPattern | None:
    """Return the first pattern that means the host by its name or by any of its addresses."""
    for pattern in patterns:
        if pattern.names(host) or any(_holds(pattern, address) for address in addresses):
            return pattern
    return None


def _by_name(host: Host, rules: HostRules) -> Decision | None:
    if (pattern := meant(host, (), rules.denied)) is not None:
        return _denied(host, rules, pattern)
    if rules.allowed is None or host.address is not None:
        return None
    open_to_it = any(pattern.names(host) or pattern.network for pattern in rules.allowed)
    return None if open_to_it else _not_allowed(host, rules)


def _by_addresses(host: Host, rules: HostRules, addresses: tuple[Address, ...]) -> Reached:
    if not addresses:
        reason = (
            f"{host} has no address that could be judged: the name does not exist or no answer came in time"
        )
        return Reached(_deny(rules, "unresolved", reason))
    if (pattern := meant(host, addresses, rules.denied)) is not None:
        return Reached(_denied(host, rules, pattern))
    admitting = _admitting(host, addresses, rules)
    if admitting is None and rules.allowed is not None:
        return Reached(_not_allowed(host, rules))
    blocked = next(_blocked(host, addresses, rules), None)
    if blocked is not None:
        return Reached(_block(host, rules, *blocked))
    return Reached(_allow(host, rules, admitting), addresses)


def _addresses(host: Host, names: NameResolver | None) -> tuple[Address, ...] | None:
    """Give all addresses; none at all where one of them cannot be read, None where nobody looks them up."""
    if host.address is not None:
        return (plain(host.address),)
    if names is None:
        return None
    try:
        found = [plain(ipaddress.ip_address(text)) for text in names.addresses(host.text)]
    except ValueError:
        return ()
    return tuple(dict.fromkeys(found))


def _admitting(host: Host, addresses: Sequence[Address], rules: HostRules) -> HostPattern | None:
    """Return an entry that admits the host: by its name, or each of its addresses by some range."""
    allowed = rules.allowed or ()
    for pattern in allowed:
        if pattern.names(host):
            return pattern
    holding = [next((p for p in allowed if p.holds(address)), None) for address in addresses]
    return holding[0] if all(holding) else None


def _blocked(host: Host, addresses: Sequence[Address], rules: HostRules) -> Iterator[tuple[Address, Special]]:
    for address in addresses:
        block = special(address)
        if block and not any(lifted(block, address, host, entry) for entry in rules.allowed or ()):
            yield address, block


def _holds(pattern: HostPattern, address: Address) -> bool:
    return any(pattern.holds(reading) for reading in readings(address))


def _allow(host: Host, rules: HostRules, pattern: HostPattern | None) -> Decision:
    if pattern is None:
        reason = f"{host} leads to public addresses alone, and {rules.allow_path} is empty"
        return Decision(Layer.TOOL_POLICY, Effect.ALLOW, reason, f"{rules.tool}.public", "built-in")
    reason = f"{pattern.source} admits {host} ({pattern.text})"
    return Decision(Layer.TOOL_POLICY, Effect.ALLOW, reason, f"{rules.tool}.allowed", pattern.source)


def _denied(host: Host, rules: HostRules, pattern: HostPattern) -> Decision:
    reason = f"{pattern.source} denies {host} ({pattern.text})"
    return _deny(rules, "denied", reason, pattern.source)


def _not_allowed(host: Host, rules: HostRules) -> Decision:
    reason = f"{host} is not in {rules.allow_path}, which admits nothing else; to allow it, name it there"
    return _deny(rules, "not-allowed", reason, rules.allow_path)


def _block(host: Host, rules: HostRules, address: Address, block: Special) -> Decision:
    leads = "" if host.address is not None else f" leads to {address}, which"
    why = f"{host}{leads} is not reached by default ({block.reason})"
    entry = rules.entry.format(_opening(host, address, block))
    others = f", and {rules.entry.format('*')} for all others" if rules.allowed is None else ""
    return _deny(rules, "blocked-address", f"{why}; to allow it, name {entry} in {rules.allow_path}{others}")


def _opening(host: Host, address: Address, block: Special) -> str:
    """Give what an allow list must name to open a blocked address: the host's name, or the address alone."""
    by_name = block.lifted_by == "any name" or (block.lifted_by == "localhost" and host.text == "localhost")
    if by_name and host.address is None:
        return host.text
    return f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else str(address)


def _deny(rules: HostRules, rule: str, reason: str, source: str = "built-in") -> Decision:
    return Decision(Layer.TOOL_POLICY, Effect.DENY, reason, f"{rules.tool}.{rule}", source)
