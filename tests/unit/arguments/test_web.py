"""Rules about domains and origins, on the arguments that clients send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from core.arguments.judgement import ArgumentJudgement
from core.arguments.web import WEB_TOOLS, judge_web, web_rules_of
from core.config import Config
from core.model.decision import Effect, strictest

ADDRESSES = {
    "github.com": ("140.82.121.4",),
    "api.github.com": ("140.82.121.6", "2606:50c0:8000::153"),
    "evil-github.com": ("93.184.216.34",),
    "github.com.evil.example": ("93.184.216.34",),
    "xn--gthub-n4a.com": ("93.184.216.34",),
    "intranet.corp": ("10.1.2.3",),
    "half.corp": ("93.184.216.34", "10.1.2.3"),
    "localhost": ("127.0.0.1", "::1"),
    "odd.example": ("140.82.121.4", "nonsense"),
}


class Names:
    """Knows a few names, and remembers which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def addresses(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        return ADDRESSES.get(host, ())


def judged(tool: str, args: Mapping[str, Any], names: Names | None = None, **tools: Any) -> ArgumentJudgement:
    rules = web_rules_of(Config.model_validate({"tools": tools}), "main")
    return judge_web(tool, args, rules, names or Names())


def fetched(url: object, names: Names | None = None, ask: Any = None, **rules: Any) -> ArgumentJudgement:
    return judged("web_fetch", {"url": url}, names, web_fetch=rules, **({"ask": ask} if ask else {}))


def browsed(url: str, ask: Any = None, **rules: Any) -> ArgumentJudgement:
    args = {"action": "navigate", "url": url}
    return judged("browser", args, browser=rules, **({"ask": ask} if ask else {}))


def answer(judgement: ArgumentJudgement) -> tuple[str, str, str]:
    decision = strictest(judgement.decisions)
    return str(decision.effect), decision.rule, decision.source


def terms(judgement: ArgumentJudgement) -> list[dict[str, Any]]:
    return [constraint.to_json() for constraint in judgement.constraints]


def test_a_public_page_is_allowed_on_terms() -> None:
    judgement = fetched("https://api.github.com/zen")
    assert answer(judgement) == ("allow", "web_fetch.public", "built-in")
    assert terms(judgement) == [
        {
            "kind": "connect-to",
            "host": "api.github.com",
            "addresses": ("140.82.121.6", "2606:50c0:8000::153"),
        },
        {"kind": "judge-redirects"},
        {"kind": "max-response-bytes", "bytes": 5242880},
    ]


def test_terms_follow_the_settings() -> None:
    judgement = fetched("https://github.com/", followRedirects=False, maxResponseBytes=100)
    assert [term["kind"] for term in terms(judgement)] == ["connect-to", "no-redirects", "max-response-bytes"]
    assert terms(judgement)[2]["bytes"] == 100


@pytest.mark.parametrize("tool", ["web_fetch", "WebFetch", "web-fetch", " WEB_FETCH "])
def test_the_tool_counts_under_each_of_its_names(tool: str) -> None:
    args = {"url": "http://127.0.0.1/", "prompt": "what is here?"}
    assert answer(judged(tool, args))[1] == "web_fetch.blocked-address"


@pytest.mark.parametrize("tool", ["read", "exec", "web_search", "message"])
def test_other_tools_have_nothing_to_judge_here(tool: str) -> None:
    assert tool not in WEB_TOOLS
    assert judged(tool, {"url": "http://127.0.0.1/"}) == ArgumentJudgement()


def test_a_tool_switched_off_is_denied_without_a_look_up() -> None:
    names = Names()
    assert answer(fetched("https://github.com/", names, enabled=False)) == (
        "deny",
        "web_fetch.disabled",
        "tools.web_fetch.enabled",
    )
    off = judged("browser", {"action": "tabs"}, names, browser={"enabled": False})
    assert answer(off) == ("deny", "browser.disabled", "tools.browser.enabled")
    picture = judged("image", {"image": "https://github.com/a.png"}, names, web_fetch={"enabled": False})
    assert answer(picture)[1] == "web_fetch.disabled"
    assert names.asked == []


@pytest.mark.parametrize(
    ("url", "allowed", "effect"),
    [
        ("https://github.com/", "github.com", "allow"),
        ("https://GITHUB.COM./", "github.com", "allow"),
        ("hTTps://github.com:8443/", "GitHub.com.", "allow"),
        ("https://api.github.com/", "github.com", "deny"),
        ("https://api.github.com/", "*.github.com", "allow"),
        ("https://github.com/", "*.github.com", "deny"),
        ("https://evil-github.com/", "github.com", "deny"),
        ("https://evil-github.com/", "*.github.com", "deny"),
        ("https://github.com.evil.example/", "github.com", "deny"),
        ("https://github.com.evil.example/", "*.github.com", "deny"),
        ("https://github.com@evil.example/", "github.com", "deny"),
        ("https://evil.example/?github.com", "github.com", "deny"),
        ("https://evil.example/#github.com", "github.com", "deny"),
        ("https://g\u0456thub.com/", "github.com", "deny"),
        ("https://github%2ecom/", "github.com", "deny"),
        ("https://github.com/", "*", "allow"),
        ("https://140.82.121.4/", "github.com", "deny"),
        ("https://140.82.121.4/", "140.82.0.0/16", "allow"),
        ("https://github.com/", "140.82.0.0/16", "allow"),
        ("https://api.github.com/", "140.82.0.0/16", "deny"),
        ("https://evil-github.com/", "140.82.0.0/16", "deny"),
        ("https://odd.example/", "140.82.0.0/16", "deny"),
    ],
)
def test_an_allow_list_admits_what_it_names_and_nothing_near_it(url: str, allowed: str, effect: str) -> None:
    assert answer(fetched(url, allowedDomains=[allowed]))[0] == effect


@pytest.mark.parametrize(
    ("url", "denied", "effect"),
    [
        ("https://github.com/", "github.com", "deny"),
        ("https://GitHub.com./", "github.com", "deny"),
        ("https://api.github.com/", "github.com", "allow"),
        ("https://api.github.com/", "*.github.com", "deny"),
        ("https://github.com/", "*.github.com", "allow"),
        ("https://evil-github.com/", "*.github.com", "allow"),
        ("https://github.com/", "*", "deny"),
        ("https://github.com/", "140.82.0.0/16", "deny"),
        ("https://api.github.com/", "2606:50c0::/32", "deny"),
        ("https://[64:ff9b::140.82.121.4]/", "140.82.0.0/16", "deny"),
        ("https://[::ffff:140.82.121.4]/", "140.82.0.0/16", "deny"),
        ("https://140.82.121.4/", "140.82.121.4", "deny"),
    ],
)
def test_a_deny_list_denies_what_it_names_by_every_address(url: str, denied: str, effect: str) -> None:
    assert answer(fetched(url, deniedDomains=[denied]))[0] == effect
    both = answer(fetched(url, deniedDomains=[denied], allowedDomains=["*"]))[0]
    assert both == effect


def test_the_answer_names_the_entry() -> None:
    rules = {"allowedDomains": ["npmjs.com", "github.com"], "deniedDomains": ["a.example", "api.github.com"]}
    assert answer(fetched("https://github.com/", **rules)) == (
        "allow",
        "web_fetch.allowed",
        "tools.web_fetch.allowedDomains[1]",
    )
    assert answer(fetched("https://api.github.com/", **rules)) == (
        "deny",
        "web_fetch.denied",
        "tools.web_fetch.deniedDomains[1]",
    )
    assert answer(fetched("https://evil.example/", **rules)) == (
        "deny",
        "web_fetch.not-allowed",
        "tools.web_fetch.allowedDomains",
    )


def test_a_name_that_cannot_be_admitted_is_not_looked_up() -> None:
    names = Names()
    fetched("https://secret.evil.example/", names, allowedDomains=["github.com"])
    fetched("https://github.com/", names, deniedDomains=["github.com"])
    fetched("https://user@github.com/", names)
    assert names.asked == []
    fetched("https://secret.evil.example/", names, allowedDomains=["140.82.0.0/16"])
    assert names.asked == ["secret.evil.example"]


@pytest.mark.parametrize("url", ["https://nowhere.example/", "https://odd.example/"])
def test_no_answer_and_an_unreadable_answer_deny(url: str) -> None:
    assert answer(fetched(url))[:2] == ("deny", "web_fetch.unresolved")


@pytest.mark.parametrize(
    ("url", "allowed", "effect"),
    [
        ("http://intranet.corp/", ["intranet.corp"], "allow"),
        ("http://intranet.corp/", ["10.0.0.0/8"], "allow"),
        ("http://intranet.corp/", ["*.corp"], "deny"),
        ("http://intranet.corp/", ["*"], "deny"),
        ("http://intranet.corp/", [], "deny"),
        ("http://half.corp/", [], "deny"),
        ("http://half.corp/", ["10.0.0.0/8"], "deny"),
        ("http://half.corp/", ["10.0.0.0/8", "half.corp"], "allow"),
        ("http://half.corp/", ["10.0.0.0/8", "*"], "allow"),
        ("http://localhost/", ["localhost"], "allow"),
        ("http://localhost/", ["127.0.0.1"], "deny"),
        ("http://localhost/", ["127.0.0.1", "::1"], "allow"),
        ("http://127.0.0.1/", ["localhost"], "deny"),
        ("http://[::1]/", ["[::1]"], "allow"),
        ("http://[::ffff:10.1.2.3]/", ["10.1.2.3"], "allow"),
    ],
)
def test_private_addresses_are_reached_only_where_they_are_named(
    url: str, allowed: list[str], effect: str
) -> None:
    assert answer(fetched(url, allowedDomains=allowed))[0] == effect


def test_a_blocked_address_is_told_with_the_reason_and_the_mend() -> None:
    reason = fetched("http://169.254.169.254/latest/meta-data/").decisions[0].reason
    assert "link-local: 169.254.169.254 is where clouds keep credentials" in reason
    assert "name 169.254.169.254 in tools.web_fetch.allowedDomains, and * for all others" in reason
    named = fetched("http://intranet.corp/", allowedDomains=["*"]).decisions[0].reason
    assert named.endswith("to allow it, name intranet.corp in tools.web_fetch.allowedDomains")
    shown = browsed("http://localhost:3000/").decisions[0].reason
    assert "name http://localhost:3000 in tools.browser.allowedOrigins, and http://*:3000 for all" in shown


@pytest.mark.parametrize("mend", [("http://localhost:3000", "http://*:3000")])
def test_the_mend_that_is_told_works(mend: tuple[str, ...]) -> None:
    assert answer(browsed("http://localhost:3000/", allowedOrigins=mend))[0] == "allow"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "url is missing"),
        ({"prompt": "https://github.com/"}, "url is missing"),
        ({"url": None}, "url is missing"),
        ({"url": True}, "url is missing"),
        ({"url": []}, "url is missing"),
        ({"url": 7}, "must be text"),
        ({"url": ["https://github.com/"]}, "takes its address in url"),
        ({"url": {"url": "https://github.com/"}}, "takes its address in url"),
        ({"url": ["https://github.com/", "http://10.0.0.1/"]}, "both lead somewhere"),
        ({"url": "https://github.com/", "URL": "http://10.0.0.1/"}, "both lead somewhere"),
        ({"url": "https://github.com/", "targetUrl": "http://10.0.0.1/"}, "both lead somewhere"),
        ({"url": "https://github.com/", "proxy": "10.0.0.1:3128"}, "both lead somewhere"),
        ({"url": "https://github.com/", "headers": {"Host": "intranet.corp"}}, "both lead somewhere"),
        (
            {"url": "https://github.com/", "options": [{"base_url": "http://10.0.0.1/"}]},
            "both lead somewhere",
        ),
        ({"Url": "https://github.com/"}, "takes its address in url"),
        ({"uri": "https://github.com/"}, "takes its address in url"),
        ({"target": "HTTP://github.com/"}, "takes its address in url"),
        ({"url": ""}, "not absolute"),
        ({"url": "javascript:alert(1)"}, "its scheme is javascript:"),
    ],
)
def test_an_address_that_is_missing_doubled_or_no_text_is_denied(args: dict[str, Any], why: str) -> None:
    judgement = judged("web_fetch", args)
    assert answer(judgement)[:2] == ("deny", "web_fetch.url")
    assert why in judgement.decisions[0].reason
    assert judgement.constraints == ()


def test_a_refused_address_is_shown_safe_and_short() -> None:
    reason = fetched("https://\u202e" + "x" * 100_000).decisions[0].reason
    assert reason.isprintable()
    assert len(reason) < 400


def test_very_deep_arguments_are_still_judged() -> None:
    deep: dict[str, Any] = {"proxy": "http://10.0.0.1/"}
    for _ in range(5_000):
        deep = {"a": deep}
    judgement = judged("web_fetch", {"url": "https://github.com/", "options": deep})
    assert answer(judgement)[0] == "deny"


@pytest.mark.parametrize(
    ("domain", "url", "effect"),
    [
        ("github.com", "https://github.com/", "ask"),
        ("github.com", "https://api.github.com/", "allow"),
        ("*.github.com", "https://api.github.com/", "ask"),
        ("140.82.0.0/16", "https://github.com/", "ask"),
        ("*", "https://github.com/", "ask"),
        ("*", "http://10.0.0.1/", "deny"),
    ],
)
def test_a_domain_to_ask_about_makes_a_question_of_a_yes_alone(domain: str, url: str, effect: str) -> None:
    for judgement in (fetched(url, ask={"domains": [domain]}), browsed(url, ask={"domains": [domain]})):
        assert answer(judgement)[0] == effect
        if effect == "ask":
            assert answer(judgement)[1:] == ("tool.ask-domain", "tools.ask.domains[0]")
            assert judgement.constraints


@pytest.mark.parametrize(
    ("url", "allowed", "effect"),
    [
        ("https://github.com/x", "https://github.com", "allow"),
        ("https://github.com:443/x", "https://github.com", "allow"),
        ("https://github.com/x", "https://github.com:443", "allow"),
        ("http://github.com/x", "https://github.com", "deny"),
        ("http://github.com:443/x", "https://github.com", "deny"),
        ("https://github.com:8443/x", "https://github.com", "deny"),
        ("https://github.com:8443/x", "https://github.com:8443", "allow"),
        ("https://api.github.com/x", "https://*.github.com", "allow"),
        ("https://github.com/x", "https://*.github.com", "deny"),
        ("http://api.github.com/x", "https://*.github.com", "deny"),
        ("https://api.github.com:8443/x", "https://*.github.com", "deny"),
        ("https://evil-github.com/x", "https://*.github.com", "deny"),
        ("https://github.com.evil.example/x", "https://*.github.com", "deny"),
        ("https://github.com/x", "https://*", "allow"),
        ("http://localhost:3000/", "http://localhost:3000", "allow"),
        ("http://localhost:3001/", "http://localhost:3000", "deny"),
        ("http://localhost:3000/", "http://*:3000", "deny"),
        ("http://[::1]:3000/", "http://[::1]:3000", "allow"),
    ],
)
def test_origins_are_compared_by_scheme_host_and_port(url: str, allowed: str, effect: str) -> None:
    assert answer(browsed(url, allowedOrigins=[allowed]))[0] == effect


@pytest.mark.parametrize(
    ("url", "denied", "effect"),
    [
        ("https://github.com/", "https://github.com", "deny"),
        ("https://GITHUB.com.:443/", "https://github.com", "deny"),
        ("http://github.com/", "https://github.com", "allow"),
        ("https://api.github.com/", "https://*.github.com", "deny"),
        ("https://github.com/", "https://140.82.121.4", "deny"),
    ],
)
def test_a_denied_origin_wins(url: str, denied: str, effect: str) -> None:
    assert answer(browsed(url, deniedOrigins=[denied]))[0] == effect
    assert answer(browsed(url, deniedOrigins=[denied], allowedOrigins=["https://*", "http://*"]))[0] == effect


@pytest.mark.parametrize("place", ["url", "targetUrl", "target_url"])
def test_a_browser_takes_its_address_in_one_of_several_places(place: str) -> None:
    judgement = judged("browser", {"action": "open", place: "https://github.com/"})
    assert answer(judgement)[0] == "allow"
    assert [term["kind"] for term in terms(judgement)] == ["connect-to", "judge-redirects"]
    assert answer(judged("browser", {"action": "open", place: "file:///etc/passwd"}))[:2] == (
        "deny",
        "browser.url",
    )
    nested = {"action": "act", "request": {"kind": "click", place: "http://10.0.0.1/"}}
    assert answer(judged("browser", nested))[0] == "deny"


@pytest.mark.parametrize(
    "url",
    ["about:blank", "file:///etc/passwd", "data:text/html,x", "javascript:1", "blob:https://github.com/1",
     "view-source:https://github.com/", "chrome://settings"],
)  # fmt: skip
def test_a_browser_opens_nothing_but_the_web(url: str) -> None:
    assert answer(browsed(url))[:2] == ("deny", "browser.url")


RULED = {"allowedOrigins": ["https://github.com"]}


@pytest.mark.parametrize(
    ("args", "free", "ruled"),
    [
        ({"action": "navigate"}, Effect.DENY, Effect.DENY),
        ({"action": "open", "url": None}, Effect.DENY, Effect.DENY),
        ({"action": "new_tab"}, Effect.DENY, Effect.DENY),
        ({"action": "act", "request": {"kind": "navigate"}}, Effect.DENY, Effect.DENY),
        ({"action": "snapshot"}, None, None),
        ({"action": "act", "request": {"kind": "click", "ref": "e1"}}, None, None),
        ({"action": "act", "kind": "type", "text": "https://evil.example/"}, None, None),
        ({"action": "act", "request": {"kind": "evaluate", "fn": "fetch('//x')"}}, Effect.DENY, Effect.DENY),
        ({"action": "act", "request": {"kind": 7}}, Effect.DENY, Effect.DENY),
        ({"action": "back"}, None, Effect.DENY),
        ({"action": "somethingNew"}, Effect.DENY, Effect.DENY),
        ({"action": 7}, Effect.DENY, Effect.DENY),
        ({}, Effect.DENY, Effect.DENY),
    ],
)
def test_actions_without_an_address(args: dict[str, Any], free: Effect | None, ruled: Effect | None) -> None:
    def effect(judgement: ArgumentJudgement) -> Effect | None:
        return strictest(judgement.decisions).effect if judgement.decisions else None

    assert effect(judged("browser", args)) is free
    assert effect(judged("browser", args, browser=RULED)) is ruled
    assert effect(judged("browser", args, ask={"domains": ["evil.example"]})) is ruled


def test_what_stays_on_the_page_is_bound_to_judge_where_it_leads() -> None:
    staying = judged("browser", {"action": "act", "request": {"kind": "click"}}, browser=RULED)
    assert terms(staying) == [{"kind": "judge-redirects"}]


def test_a_canvas_is_a_browser() -> None:
    assert answer(judged("canvas", {"action": "navigate", "url": "http://10.0.0.1/"}))[0] == "deny"
    assert answer(judged("canvas", {"action": "present", "target": "http://10.0.0.1/"}))[0] == "deny"
    assert answer(judged("canvas", {"action": "present", "url": "https://github.com/"}))[0] == "allow"


@pytest.mark.parametrize(
    ("args", "effects"),
    [
        ({"image": "/srv/a.png", "prompt": "compare with https://x.example/"}, []),
        ({"image": "data:image/png;base64,AAAA"}, []),
        ({"image": "data:text/html,<img src=http://10.0.0.1/>"}, ["deny"]),
        ({"image": "https://github.com/a.png"}, ["allow"]),
        ({"image": "HTTP://10.0.0.1/a.png"}, ["deny"]),
        ({"image": " http://10.0.0.1/a.png"}, ["deny"]),
        ({"image": "ftp://github.com/a.png"}, ["deny"]),
        ({"images": ["/srv/a.png", "https://github.com/a.png", "http://10.0.0.1/"]}, ["allow", "deny"]),
    ],
)
def test_pictures_given_by_address_are_fetched_like_pages(args: dict[str, Any], effects: list[str]) -> None:
    assert [str(decision.effect) for decision in judged("image", args).decisions] == effects


@pytest.mark.parametrize(
    "entry",
    ["https://github.com", "*github.com", "api.*.com", "**.github.com", "github.com/", "github.com:443",
     "10.0.0.1/8", "10.0.0.0/40", "10.0.0.0/255.0.0.0", "10.0.0.0/", "2130706433", "127.1", "0x7f.1",
     "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "fe80::1%eth0", "*.10.0.0.1", "*.", ".github.com",
     "a..b", "git hub.com", "user@github.com", "github%2ecom", "-a.example", "\u202egithub.com", "[::1"],
)  # fmt: skip
def test_a_faulty_domain_is_an_error_at_load_that_names_the_entry(entry: str) -> None:
    sections = [("web_fetch", "allowedDomains"), ("web_fetch", "deniedDomains"), ("ask", "domains")]
    for section, key in sections:
        with pytest.raises(ValidationError) as refused:
            Config.model_validate({"tools": {section: {key: ["github.com", entry]}}})
        assert [error["loc"] for error in refused.value.errors()] == [("tools", section, key, 1)]


@pytest.mark.parametrize(
    "entry",
    ["github.com", "https://github.com/", "https://github.com/x", "https://10.0.0.0/8", "ftp://github.com",
     "https://", "https://*github.com", "https://github.com:0", "https://github.com:65536",
     "https://github.com:*", "https://user@github.com", "https://github.com?x", "*", "*.github.com",
     "HTTPS://github.com", "https://[::1", "https://127.1"],
)  # fmt: skip
def test_a_faulty_origin_is_an_error_at_load_that_names_the_entry(entry: str) -> None:
    for key in ("allowedOrigins", "deniedOrigins"):
        with pytest.raises(ValidationError) as refused:
            Config.model_validate({"tools": {"browser": {key: ["https://github.com", entry]}}})
        assert [error["loc"] for error in refused.value.errors()] == [("tools", "browser", key, 1)]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("browser", {"action": "act", "request": {"kind": "evaluate", "fn": "fetch('//x')"}}),
        ("browser", {"action": "evaluate", "script": "fetch('//x')"}),
        ("browser", {"action": "execute_script"}),
        ("browser", {"action": "act", "request": {"kind": "wait", "fn": "() => fetch('//x')"}}),
        ("canvas", {"action": "eval", "javaScript": "fetch('//x')"}),
        ("browser", {"action": "navigate", "url": "https://github.com/", "script": "fetch('//x')"}),
    ],
)
def test_scripts_in_a_page_need_their_own_switch(tool: str, args: dict[str, Any]) -> None:
    refusal = judged(tool, args)
    assert strictest(refusal.decisions).effect is Effect.DENY
    assert "tools.browser.evaluate: true allows it" in refusal.decisions[0].reason
    origins = judged(tool, args, browser={"allowedOrigins": ["https://*"]})
    assert strictest(origins.decisions).effect is Effect.DENY
    switched = judged(tool, args, browser={"evaluate": True})
    assert Effect.DENY not in {decision.effect for decision in switched.decisions}
    assert "judge-redirects" in {term["kind"] for term in terms(switched)}


def test_whatever_a_browser_does_has_its_redirects_judged() -> None:
    for args in ({"action": "snapshot"}, {"action": "back"}, {"action": "act", "request": {"kind": "click"}}):
        assert terms(judged("browser", args)) == [{"kind": "judge-redirects"}]


@pytest.mark.parametrize(
    "more",
    [
        {"src": "http://10.0.0.1/"},
        {"src": "10.0.0.1"},
        {"then": " HTTPS://evil.example/"},
        {"options": {"fallback": ["//evil.example/x"]}},
        {"source": "http://10.0.0.1/"},
        {"server": "10.0.0.1"},
    ],
)
def test_a_page_is_fetched_from_one_address(more: dict[str, Any]) -> None:
    refusal = judged("web_fetch", {"url": "https://github.com/", **more})
    assert answer(refusal)[:2] == ("deny", "web_fetch.url")
    assert "both lead somewhere" in refusal.decisions[0].reason


@pytest.mark.parametrize(
    "more", [{"prompt": "https://github.com/ again?"}, {"extractMode": "text"}, {"maxChars": 9}]
)
def test_words_beside_the_address_are_no_address(more: dict[str, Any]) -> None:
    assert answer(judged("web_fetch", {"url": "https://github.com/", **more}))[0] == "allow"


@pytest.mark.parametrize(
    ("url", "effect"),
    [
        ("https://user@github.com/", "deny"),
        ("https://127.0.0.1/", "deny"),
        ("https://evil.example/", "deny"),
        ("https://140.82.121.4/", "allow"),
    ],
)
def test_what_needs_no_look_up_is_decided_without_names(url: str, effect: str) -> None:
    fetch = {"deniedDomains": ["evil.example"]}
    rules = web_rules_of(Config.model_validate({"tools": {"web_fetch": fetch}}), "main")
    judgement = judge_web("web_fetch", {"url": url}, rules, None)
    assert answer(judgement)[0] == effect
    assert not judgement.unresolved


def test_a_name_that_nobody_looked_up_is_left_open() -> None:
    judgement = judge_web("web_fetch", {"url": "https://github.com/"}, web_rules_of(Config(), "main"), None)
    assert judgement.unresolved
    assert judgement.decisions == ()
    assert "connect-to" not in {term["kind"] for term in terms(judgement)}
