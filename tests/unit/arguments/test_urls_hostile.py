"""URLs that programs read differently, or that pass for another: each is refused, and told why."""
# ruff: noqa: RUF001 - letters that look like others are what is tested

from __future__ import annotations

import pytest

from core.arguments.urls import Refusal, Target, read_url

SCHEME = "only https: and http:"
RELATIVE = "not absolute"
SLASHES = "exactly two slashes"
MISSING = "the host is missing"
USER = "user name before @"
ENDS = "where its host ends"
BLANK = "blank or hidden character"
BACKSLASH = "backslash"
PERCENT = "percent-encoded"
EMPTY = "empty label"
LONG_LABEL = "a label of the host has"
CHARACTER = "a character or a hyphen"
IDN = "international names"
OLDER = "older rules"
NUMBER = "four decimal numbers"
BRACKETS = "no IPv6 address"
ZONE = "zone"
PORT = "its port must be"
COLONS = "several colons"
AFTER = "other than a port"

HOSTILE = [
    # Other schemes, and none.
    ("file:///etc/passwd", SCHEME),
    ("file://github.com/etc/passwd", SCHEME),
    ("FILE:///etc/passwd", SCHEME),
    ("data:text/html,<script>1</script>", SCHEME),
    ("javascript:alert(1)", SCHEME),
    ("javascript://github.com/%0aalert(1)", SCHEME),
    ("JaVaScRiPt:alert(1)", SCHEME),
    ("about:blank", SCHEME),
    ("view-source:https://github.com/", SCHEME),
    ("blob:https://github.com/1234", SCHEME),
    ("filesystem:https://github.com/temporary/x", SCHEME),
    ("ftp://github.com/", SCHEME),
    ("gopher://127.0.0.1:6379/_INFO", SCHEME),
    ("dict://127.0.0.1:11211/", SCHEME),
    ("ldap://127.0.0.1/", SCHEME),
    ("ws://github.com/", SCHEME),
    ("wss://github.com/", SCHEME),
    ("chrome://settings", SCHEME),
    ("chrome-extension://abc/page.html", SCHEME),
    ("jar:https://github.com/a.jar!/", SCHEME),
    ("unix:/run/docker.sock", SCHEME),
    ("http+unix://%2Frun%2Fdocker.sock/info", SCHEME),
    ("httpx://github.com/", SCHEME),
    ("https-://github.com/", SCHEME),
    ("localhost:8080/", SCHEME),
    ("github.com:443", SCHEME),
    ("", RELATIVE),
    ("github.com", RELATIVE),
    ("/etc/passwd", RELATIVE),
    ("//github.com/", RELATIVE),
    ("?x", RELATIVE),
    ("#x", RELATIVE),
    ("://github.com", RELATIVE),
    ("1http://github.com/", RELATIVE),
    ("<https://github.com/>", RELATIVE),
    ("'https://github.com/'", RELATIVE),
    ("[https://github.com/](https://github.com/)", RELATIVE),
    ("url=https://github.com/", RELATIVE),
    # Slashes.
    ("http:github.com", SLASHES),
    ("https:github.com", SLASHES),
    ("http:/github.com", SLASHES),
    ("https:", SLASHES),
    ("https:/", SLASHES),
    ("http:?x", SLASHES),
    ("http://", MISSING),
    ("http:///", MISSING),
    ("http:///github.com", MISSING),
    ("http:////github.com", MISSING),
    ("https://?x", MISSING),
    ("https://#x", MISSING),
    ("https://:443/", MISSING),
    ("http:\\\\github.com", BACKSLASH),
    ("http:/\\github.com", BACKSLASH),
    ("http:\\/github.com", BACKSLASH),
    ("https://github.com\\@evil.example/", BACKSLASH),
    ("https://evil.example\\.github.com/", BACKSLASH),
    ("https://github.com/a\\..\\b", BACKSLASH),
    # User names.
    ("https://github.com@evil.example/", USER),
    ("https://github.com:443@evil.example/", USER),
    ("https://user:secret@github.com/", USER),
    ("https://@github.com/", USER),
    ("https://:@github.com/", USER),
    ("https://a@b@github.com/", USER),
    ("https://github.com%2f@evil.example/", USER),
    ("https://[::1]@github.com/", USER),
    ("https://github.com?@evil.example/", ENDS),
    ("https://github.com#@evil.example/", ENDS),
    ("https://github.com?x=1#@evil.example/", ENDS),
    ("https://evil.example#@github.com/", ENDS),
    # Blanks, controls and what cannot be seen.
    (" https://github.com/", BLANK),
    ("https://github.com/ ", BLANK),
    ("\thttps://github.com/", BLANK),
    ("https://github.com/\n", BLANK),
    ("https://github.com\r\nHost: evil.example", BLANK),
    ("ht\ntps://github.com/", BLANK),
    ("https://git\thub.com/", BLANK),
    ("https://github.com\0.evil.example/", BLANK),
    ("https://github.com\x7f/", BLANK),
    ("https://github.com/a b", BLANK),
    ("https://github.com\u00a0.evil.example/", BLANK),
    ("https://github.com\u2028/", BLANK),
    ("https://github\u00ad.com/", BLANK),
    ("https://git\u200bhub.com/", BLANK),
    ("https://git\u200dhub.com/", BLANK),
    ("https://\u202egithub.com/", BLANK),
    ("\ufeffhttps://github.com/", BLANK),
    ("https://github.com/\ud800", BLANK),
    ("https://github.com/\u3000", BLANK),
    # Percent signs and stray characters in the host.
    ("https://github%2ecom/", PERCENT),
    ("https://github.com%2eevil.example/", PERCENT),
    ("https://%67ithub.com/", PERCENT),
    ("https://github.com%00.evil.example/", PERCENT),
    ("https://github.com%23.evil.example/", PERCENT),
    ("https://127.0.0.1%2f/", PERCENT),
    ("https://github.com%/", PERCENT),
    ("https://.github.com/", EMPTY),
    ("https://github..com/", EMPTY),
    ("https://github.com../", EMPTY),
    ("https://./", EMPTY),
    ("https://../", EMPTY),
    (f"https://{'a' * 64}.example/", LONG_LABEL),
    (f"https://{'a.' * 130}example/", "at most 253"),
    ("https://github.com/" + "a" * 9000, "at most 8,192"),
    ("https://-github.com/", CHARACTER),
    ("https://github-.com/", CHARACTER),
    ("https://git$hub.com/", CHARACTER),
    ("https://git,hub.com/", CHARACTER),
    ("https://github.com;evil.example/", CHARACTER),
    ("https://github.com&evil.example/", CHARACTER),
    ("https://*.github.com/", CHARACTER),
    ("https://{github.com}/", CHARACTER),
    ("https://(github.com)/", CHARACTER),
    ("https://github.com|evil.example/", CHARACTER),
    ("https://github.com!/", CHARACTER),
    ("https://'github.com'/", CHARACTER),
    ("https://github.com]/", CHARACTER),
    ("https://evil.example[github.com]/", CHARACTER),
    # Letters of other scripts that become other hosts.
    ("https://ｇithub.com/", IDN),
    ("https://github。com/", IDN),
    ("https://github．com/", IDN),
    ("https://github｡com/", IDN),
    ("https://github.com／evil.example/", IDN),
    ("https://github.com＠evil.example/", IDN),
    ("https://github.com：443/", IDN),
    ("https://evil.example℀github.com/", IDN),
    ("https://ⓖithub.com/", IDN),
    ("https://１２７.0.0.1/", NUMBER),
    ("https://127。0。0。1/", IDN),
    ("https://①②⑦.0.0.1/", NUMBER),
    ("https://127.0.0.１/", IDN),
    ("https://２１３０７０６４３３/", IDN),
    ("https://GİTHUB.com/", IDN),
    ("https://\u212aernel.org/", IDN),
    ("https://BÜCHER.example/", IDN),
    ("https://💩.example/", IDN),
    ("https://xn--/", IDN),
    ("https://xn--a/", IDN),
    ("https://xn--github-.com/", IDN),
    ("https://xn--\u00fc.example/", IDN),
    ("https://straße.example/", OLDER),
    ("https://βόλος.example/", OLDER),
    # IPv4 in spellings that only some programs take for an address.
    ("http://2130706433/", NUMBER),
    ("http://0x7f000001/", NUMBER),
    ("http://0X7F000001/", NUMBER),
    ("http://017700000001/", NUMBER),
    ("http://0x7f.1/", NUMBER),
    ("http://0x7f.0.0.0x1/", NUMBER),
    ("http://0177.0.0.1/", NUMBER),
    ("http://127.000.000.001/", NUMBER),
    ("http://127.1/", NUMBER),
    ("http://127.0.1/", NUMBER),
    ("http://0/", NUMBER),
    ("http://0x/", NUMBER),
    ("http://1.2.3.4.5/", NUMBER),
    ("http://256.1.1.1/", NUMBER),
    ("http://127.0.0.1./", NUMBER),
    ("http://127.0.0.08/", NUMBER),
    ("http://github.com.1/", NUMBER),
    ("http://github.0x10/", NUMBER),
    ("http://4294967297/", NUMBER),
    ("http://999999999999999999999/", NUMBER),
    # IPv6.
    ("http://[::1/", BRACKETS),
    ("http://[]/", BRACKETS),
    ("http://[127.0.0.1]/", BRACKETS),
    ("http://[github.com]/", BRACKETS),
    ("http://[::ffff:127.1]/", BRACKETS),
    ("http://[::ffff:0177.0.0.1]/", BRACKETS),
    ("http://[1:2:3]/", BRACKETS),
    ("http://[:::1]/", BRACKETS),
    ("http://[v1.fe80::1]/", BRACKETS),
    ("http://[[::1]]/", AFTER),
    ("http://[fe80::1%eth0]/", ZONE),
    ("http://[fe80::1%25eth0]/", ZONE),
    ("http://[::1%lo]/", ZONE),
    ("http://[::1]evil.example/", AFTER),
    ("http://[::1].evil.example/", AFTER),
    ("http://::1/", COLONS),
    ("http://fe80::1/", COLONS),
    ("http://github.com:80:80/", COLONS),
    # Ports.
    ("http://github.com:/", PORT),
    ("http://github.com:0/", PORT),
    ("http://github.com:65536/", PORT),
    ("http://github.com:080/", PORT),
    ("http://github.com:+80/", PORT),
    ("http://github.com:-1/", PORT),
    ("http://github.com:8o/", PORT),
    ("http://github.com:٨٠/", PORT),
    ("http://github.com:８０/", PORT),
    ("http://github.com:443.evil.example/", PORT),
    ("http://github.com:https/", PORT),
    ("http://[::1]:/", PORT),
    ("http://[::1]:99999/", PORT),
]


def test_the_table_is_large_and_names_each_url_once() -> None:
    assert len(HOSTILE) >= 120
    assert len({url for url, _ in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize(("url", "why"), HOSTILE, ids=[ascii(url)[:60] for url, _ in HOSTILE])
def test_it_is_refused_and_told_why(url: str, why: str) -> None:
    answer = read_url(url)
    assert isinstance(answer, Refusal), answer
    assert why in answer.reason


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://github.com", "https://github.com"),
        ("https://github.com/", "https://github.com"),
        ("https://github.com?q=1", "https://github.com"),
        ("https://github.com#top", "https://github.com"),
        ("https://github.com/@user/a:b//c?d=https://evil.example/@x#@y", "https://github.com"),
        ("HTTPS://GitHub.COM/", "https://github.com"),
        ("hTTp://github.com/", "http://github.com"),
        ("https://github.com./", "https://github.com"),
        ("https://github.com:443/", "https://github.com"),
        ("https://github.com.:443/", "https://github.com"),
        ("http://github.com:443/", "http://github.com:443"),
        ("https://github.com:65535/", "https://github.com:65535"),
        ("http://localhost:3000/", "http://localhost:3000"),
        ("https://my_bucket.s3.example/", "https://my_bucket.s3.example"),
        ("https://r3---sn-x.video.example/", "https://r3---sn-x.video.example"),
        ("https://1.example/", "https://1.example"),
        ("https://4x/", "https://4x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("https://Bücher.example/", "https://xn--bcher-kva.example"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example"),
        ("https://xn--strae-oqa.example/", "https://xn--strae-oqa.example"),
        ("https://\u0430pple.example/", "https://xn--pple-43d.example"),
        ("https://de.wikipedia.example/wiki/Übung", "https://de.wikipedia.example"),
        ("http://127.0.0.1/", "http://127.0.0.1"),
        ("http://10.0.0.5:8080/", "http://10.0.0.5:8080"),
        ("http://[::1]/", "http://[::1]"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]"),
        ("http://[2001:DB8::A]:8080/", "http://[2001:db8::a]:8080"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]"),
    ],
)
def test_what_every_program_reads_alike_has_one_origin(url: str, origin: str) -> None:
    answer = read_url(url)
    assert isinstance(answer, Target), answer
    assert answer.origin == origin


@pytest.mark.parametrize(("url", "why"), HOSTILE[:3] + HOSTILE[-3:])
def test_a_refusal_is_one_line_without_the_url(url: str, why: str) -> None:
    answer = read_url(url)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
    assert url not in answer.reason
    assert answer.reason.isprintable()
