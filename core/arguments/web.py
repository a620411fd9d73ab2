"""May this address be fetched or opened? `tools.web_fetch`, `tools.browser`, `tools.ask.domains`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from core.arguments.addressed import addresses_in, read, target_of
from core.arguments.browser import ADDRESS_PLACES, check_action, check_scripts
from core.arguments.judgement import ArgumentJudgement
from core.arguments.reach import HostRules, meant, reach
from core.arguments.unclear import UnclearArgumentError
from core.arguments.urls import Target
from core.config import Config
from core.config.web import HostPattern, OriginPattern
from core.model.decision import Constraint, Decision, Effect, Layer
from core.model.hosts import Address
from core.policy.names import normalise
from core.ports import NameResolver

_FETCH, _BROWSER = "web_fetch", "browser"
_Pattern = TypeVar("_Pattern")
_NOTHING = ArgumentJudgement()
# What a tool is told in words, and how a picture begins that is sent along and fetched from nowhere.
_WORDS = frozenset({"prompt", "description", "question"})
_INLINE = "data:image/"
_JUDGE_REDIRECTS = Constraint("judge-redirects")
_NO_REDIRECTS = Constraint("no-redirects")


@dataclass(frozen=True, slots=True)
class WebRules:
    """What holds for tools that reach the web; empty allow lists admit every public host."""

    fetch_enabled: bool = True
    allowed_domains: tuple[HostPattern, ...] = ()
    denied_domains: tuple[HostPattern, ...] = ()
    max_response_bytes: int = 5 * 1024 * 1024
    follow_redirects: bool = True
    browser_enabled: bool = True
    browser_scripts: bool = False
    allowed_origins: tuple[OriginPattern, ...] = ()
    denied_origins: tuple[OriginPattern, ...] = ()
    ask_domains: tuple[HostPattern, ...] = ()


def web_rules_of(config: Config, _agent: str) -> WebRules:
    """Read the rules that hold for an agent; they are the same for all."""
    fetch, browser = config.tools.web_fetch, config.tools.browser
    return WebRules(
        fetch_enabled=fetch.enabled,
        allowed_domains=_read(HostPattern.parse, fetch.allowed_domains, "tools.web_fetch.allowedDomains"),
        denied_domains=_read(HostPattern.parse, fetch.denied_domains, "tools.web_fetch.deniedDomains"),
        max_response_bytes=fetch.max_response_bytes,
        follow_redirects=fetch.follow_redirects,
        browser_enabled=browser.enabled,
        browser_scripts=browser.evaluate,
        allowed_origins=_read(OriginPattern.parse, browser.allowed_origins, "tools.browser.allowedOrigins"),
        denied_origins=_read(OriginPattern.parse, browser.denied_origins, "tools.browser.deniedOrigins"),
        ask_domains=_read(HostPattern.parse, config.tools.ask.domains, "tools.ask.domains"),
    )


def judge_web(
    tool: str, args: Mapping[str, Any], rules: WebRules, names: NameResolver | None
) -> ArgumentJudgement:
    """Judge the address that a call leads to; a tool that reaches no web address has nothing to judge."""
    judge = _JUDGES.get(normalise(tool))
    if judge is None:
        return _NOTHING
    try:
        return judge(args, rules, names)
    except UnclearArgumentError as fault:
        return _only(_deny(f"{normalise(tool)}.url", str(fault)))


def _fetch(args: Mapping[str, Any], rules: WebRules, names: NameResolver | None) -> ArgumentJudgement:
    if not rules.fetch_enabled:
        return _disabled(_FETCH)
    target = target_of(args, ("url",), texts=_WORDS)
    if target is None:
        raise UnclearArgumentError("url is missing; give one absolute URL")
    return _fetched(target, rules, names)


def _image(args: Mapping[str, Any], rules: WebRules, names: NameResolver | None) -> ArgumentJudgement:
    """Judge pictures that are given by address: they are fetched like pages."""
    found = list(addresses_in(args, texts=_WORDS))
    addresses = [(path, text) for path, text in found if not text.startswith(_INLINE)]
    if addresses and not rules.fetch_enabled:
        return _disabled(_FETCH)
    return sum((_fetched(read(text, path), rules, names) for path, text in addresses), _NOTHING)


def _fetched(target: Target, rules: WebRules, names: NameResolver | None) -> ArgumentJudgement:
    hosts = HostRules(
        _FETCH, "tools.web_fetch.allowedDomains", rules.allowed_domains or None, rules.denied_domains
    )
    redirects = _JUDGE_REDIRECTS if rules.follow_redirects else _NO_REDIRECTS
    size = Constraint("max-response-bytes", (("bytes", rules.max_response_bytes),))
    return _reached(target, hosts, rules, names, (redirects, size))


def _browse(args: Mapping[str, Any], rules: WebRules, names: NameResolver | None) -> ArgumentJudgement:
    if not rules.browser_enabled:
        return _disabled(_BROWSER)
    target = target_of(args, ADDRESS_PLACES)
    if target is not None:
        check_scripts(args, allowed=rules.browser_scripts)
        return _reached(target, _origins(target, rules), rules, names, (_JUDGE_REDIRECTS,))
    ruled = bool(rules.allowed_origins or rules.denied_origins or rules.ask_domains)
    check_action(args, ruled=ruled, scripts=rules.browser_scripts)
    return ArgumentJudgement(constraints=(_JUDGE_REDIRECTS,))


def _origins(target: Target, rules: WebRules) -> HostRules:
    """Keep the origins of the target's scheme and port: only their hosts are left to compare."""

    def fitting(origins: tuple[OriginPattern, ...]) -> tuple[HostPattern, ...]:
        return tuple(origin.host for origin in origins if origin.fits(target.scheme, target.port))

    allowed = fitting(rules.allowed_origins) if rules.allowed_origins else None
    return HostRules(
        _BROWSER,
        "tools.browser.allowedOrigins",
        allowed,
        fitting(rules.denied_origins),
        target.origin_with("{}"),
    )


def _reached(
    target: Target,
    hosts: HostRules,
    rules: WebRules,
    names: NameResolver | None,
    terms: tuple[Constraint, ...],
) -> ArgumentJudgement:
    reached = reach(target.host, hosts, names)
    asked = _asked(target, reached.addresses, rules)
    if reached.decision is None:
        return ArgumentJudgement(asked, terms, unresolved=True)
    if reached.decision.effect is Effect.DENY:
        return _only(reached.decision)
    pinned = tuple(map(str, reached.addresses))
    connect = Constraint("connect-to", (("host", target.host.text), ("addresses", pinned)))
    return ArgumentJudgement((reached.decision, *asked), (connect, *terms))


def _asked(target: Target, addresses: tuple[Address, ...], rules: WebRules) -> tuple[Decision, ...]:
    pattern = meant(target.host, addresses, rules.ask_domains)
    if pattern is None:
        return ()
    reason = f"{target.host} is put to a person: {pattern.source} is `{pattern.text}`"
    return (Decision(Layer.TOOL_POLICY, Effect.ASK, reason, "tool.ask-domain", pattern.source),)


def _disabled(tool: str) -> ArgumentJudgement:
    source = f"tools.{tool}.enabled"
    return _only(_deny(f"{tool}.disabled", f"{tool} is switched off: {source} is false", source))


def _only(decision: Decision) -> ArgumentJudgement:
    return ArgumentJudgement((decision,))


def _deny(rule: str, reason: str, source: str = "built-in") -> Decision:
    return Decision(Layer.TOOL_POLICY, Effect.DENY, reason, rule, source)


def _read(parse: Callable[[str, str], _Pattern], texts: tuple[str, ...], path: str) -> tuple[_Pattern, ...]:
    return tuple(parse(text, f"{path}[{index}]") for index, text in enumerate(texts))


_JUDGES = MappingProxyType({_FETCH: _fetch, _BROWSER: _browse, "canvas": _browse, "image": _image})
WEB_TOOLS = frozenset(_JUDGES)
