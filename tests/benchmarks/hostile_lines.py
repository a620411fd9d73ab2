"""What an agent sends to hold up a daemon: calls that are long, deep, many or dear to judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.ingress.jsonrpc import LINE_LIMIT
from core.shell.inspect import MAX_LENGTH

PROGRAM = "/usr/bin/hostname"  # on the allowlist a thousand times, with other arguments each time
_JUST_UNDER = LINE_LIMIT - 4096
_ENVELOPE = {"jsonrpc": "2.0", "method": "exec.approval.request"}

_NAMES = tuple(f"{number:04x}" for number in range(6200))

# Lines of a shell, by what is hostile about them.
LINES: Mapping[str, str] = {
    "one word of 64 KiB": "rg " + "a" * (MAX_LENGTH - 3),
    "a program's name of 60,000 digits": "1" * 60_000 + "!",
    "a program's name of 60,000 dots": "1." * 30_000 + "!",
    "60,000 letters and a suffix": "a" * 60_000 + "-",
    "10,000 operators": "rg x;" * 10_000,
    "10,000 newlines": "\n" * 10_000 + "rg x > y",
    "64 commands of 2,048 characters": ";".join(["rg x"] * 64).ljust(2040, "x"),
    "64 commands of 4,096 characters": ";".join([f"{PROGRAM} {'y' * 40}"] * 64),
    "4,000 short words": "rg " + "a " * 4000,
    "4,000 paths": "rg " + "/a/b " * 4000,
    "4,000 paths that climb": "rg " + "../../../.. " * 4000,
    "4,000 paths with globs": "rg " + "/*/?/[a] " * 4000,
    "a glob of 60,000 stars": "rg /" + "*a" * 30_000 + "/x/y/z",
    "a glob of 30,000 parts": "rg " + "/*" * 30_000,
    "a glob of 60,000 brackets": "rg /" + "[a" * 30_000 + "/x/y/z/u/v",
    "60,000 separators": "rg " + ",=:@" * 15_000,
    "a path of 60,000 slashes": "rg " + "/" * 60_000,
    "200 clusters of 255 short options": "rg "
    + " ".join(f"-{'abcde' * 51}{number:03}/../../x" for number in range(200)),
    "16 clusters of 255 short options before long paths": "rg "
    + " ".join(f"-{'abcde' * 51}{number:02}../{'a/' * 1800}" for number in range(16)),
    "60 shells": ";".join(["bash -c 'rg x; rg y'"] * 60),
    "16 shells of 4,000 characters": ";".join(["bash -c 'rg " + "a " * 1900 + "'"] * 15),
    "1,000 nested quotes": "bash -c " + "'\"" * 1000 + "x" + "\"'" * 1000,
    "1,000 substitutions in substitutions": "rg " + "$(" * 1000 + "id" + ")" * 1000,
    "10,000 opened braces": "rg " + "{a," * 10_000,
    "10,000 parentheses": "(" * 10_000,
    "4,000 wrappers": "env " * 4000 + "id $X",
    "4,000 assignments": "A=b " * 4000 + "id",
    "our own name 10,000 times, refused": "rg $(" + "sayso " * 10_000,
    "our own name 10,000 times, as code": "python3 -c '" + "sayso " * 10_000 + "'",
    "our own name in 4,000 words": "xargs " + "sayso " * 4000,
    "our own path 2,000 times": "rg " + "/root/.saysoX " * 4000,
    "an interpreter with 4,000 options": "python3 " + "-x " * 4000,
    "a package manager with 4,000 words": "npm " + "zz " * 4000,
    "4,000 options that are abbreviated": "sort --compr" + " --zzz" * 4000,
    "a carrier of 4,000 different words": "xargs " + " ".join(f"w{number:x}" for number in range(4000)),
    "6,200 places of a PATH for 6,200 words": f"PATH=/{':/'.join(_NAMES)} xargs '{' '.join(_NAMES)}'",
    "16 places of a PATH for 6,200 words": f"PATH=/{':/'.join(_NAMES[:16])} xargs '{' '.join(_NAMES)}'",
    "16 long places of a PATH for 300 words": f"PATH=/{':/'.join(name * 900 for name in _NAMES[:16])} "
    f"xargs '{' '.join(_NAMES[:300])}'",
    "60,000 short options in one word": "tar -" + "a" * 60_000,
    "60,000 letters with endings to try": "node -" + "a" * 60_000,
    "a module of 30,000 packages": "python3 -m " + "a." * 30_000 + "b",
    "30,000 commands in a variable": f"A='{'x ' * 30_000}' make",
    "thirty long variables before thirty commands": "; ".join(
        [f"A{number}='{' '.join(_NAMES[:200])}'" for number in range(30)] + ["make"] * 30
    ),
    "letters beyond ASCII, and a control character": "é" * 60_000 + "\x01",
    "64 KiB of letters beyond ASCII": "rg " + "é" * 60_000,
    "20,000 different letters": "rg " + "".join(map(chr, range(0x4E00, 0x9C20))),
    "60,000 different characters": "rg " + "".join(map(chr, range(0xA1, 0xD800))),
    "64 KiB of marks": "rg " + "e\u0301\u0301\u0301" * 15_000,
    "lone surrogates": "rg " + "\\ud800" * 5,
    "the grammar takes long": "rg " + "a\\ b " * 6000,
    "the grammar never ends": "rg $X " + "\\\n " * 10 + "; ".join(["a $X"] * 63),
    "a thousand arguments to match": f"{PROGRAM} " + "y " * 4000,
    "one argument of 64 KiB to match": f"{PROGRAM} '" + "y" * 65_000 + "'",
}


def argvs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Give calls with lists of words, and with much beside the command."""
    yield "4,096 words in an argv", {"argv": ["rg", *["a"] * 4095]}
    yield "100,000 words in an argv", {"argv": ["rg", *["a"] * 100_000]}
    yield "16 words of 4,000 characters", {"argv": ["rg", *["'" * 4000] * 15]}
    yield "one MiB in an argv", {"argv": ["rg", "a" * _JUST_UNDER]}
    yield "one MiB of quotes in an argv", {"argv": ["rg", *["'"] * 200_000]}
    yield "10,000 variables", {"argv": ["rg"], "env": {f"V{n}": "v" for n in range(10_000)}}
    yield "60,000 variables", {"argv": ["rg"], "env": {f"V{n}": "" for n in range(60_000)}}
    yield "one MiB in a variable", {"argv": ["rg"], "env": {"V": "v" * _JUST_UNDER}}
    yield "one MiB in a variable of a program that runs it", {"argv": ["make"], "env": {"V": ", " * 500_000}}
    yield (
        "60,000 variables of a program that runs them",
        {
            "argv": ["make"],
            "env": {f"V{n}": "x" for n in range(60_000)},
        },
    )
    yield "one MiB of standard input", {"argv": ["rg"], "stdin": "AAAA" * (_JUST_UNDER // 4)}
    yield "a cwd of 60,000 parts", {"argv": ["rg"], "cwd": "/a" * 60_000}
    yield (
        "a tool's arguments, 50,000 of them",
        {"tool": "web_fetch", "args": {f"k{n}": n for n in range(50_000)}},
    )
    yield "a tool's name of one MiB", {"tool": "x" * _JUST_UNDER}
    yield "a path of one MiB", {"tool": "read", "args": {"path": "/a" * (_JUST_UNDER // 2)}}
    yield "a URL of one MiB", {"tool": "web_fetch", "args": {"url": "https://a.example/" + "a/" * 500_000}}
    yield "a patch of one MiB", {"tool": "apply_patch", "args": {"input": _patch()}}
    yield "an unknown member of one MiB", {"x" * _JUST_UNDER: 1, "argv": ["rg"]}
    yield "a session of 900 parts", {"argv": ["rg"], "session": "agent:main" + ":a" * 450}


def _patch() -> str:
    files = (f"*** Add File: a{n}\n+x\n" for n in range(30_000))
    return "*** Begin Patch\n" + "".join(files) + "*** End Patch\n"


def raw_lines() -> Iterator[tuple[str, bytes]]:
    """Give lines that are no good JSON, or JSON that is no call."""
    yield "one MiB of opened lists", b"[" * _JUST_UNDER
    yield "60 lists in lists, over and over", b"[" + b",".join([b"[" * 60 + b"]" * 60] * 8000) + b"]"
    yield "500,000 numbers", b"[" + b"1," * 500_000 + b"1]"
    yield "250,000 empty objects", b"[" + b"{}," * 250_000 + b"{}]"
    yield "100,000 members", json.dumps({f"k{n}": n for n in range(60_000)}).encode()
    yield "one member 60,000 times", b"{" + b",".join(b'"k%d":1' % n for n in range(60_000)) + b',"k59999":1}'
    yield "one number of 900,000 digits", b'{"jsonrpc":"2.0","id":1,"params":{"n":' + b"9" * 900_000 + b"}}"
    yield "numbers of 4,000 digits", b"[" + b",".join([b"9" * 4000] * 250) + b"]"
    yield "floats of 1,000 digits", b"[" + b",".join([b"0." + b"9" * 1000] * 1000) + b"]"
    yield "one MiB of escapes", b'["' + b"\\u0041" * 170_000 + b'"]'
    yield "100,000 strings", b"[" + b'"aaaa",' * 140_000 + b'"a"]'
    yield "one MiB that is not UTF-8", b'"' + b"a" * 1_000_000 + b'\xff"'
    yield "four MiB in one line", b"a" * 4 * LINE_LIMIT
    yield "one MiB in 1 KiB lines that are wrong", b"\n".join([b"[" * 1000] * 1000)
    yield "400,000 empty lines", b"\n" * 400_000


def calls() -> Iterator[tuple[str, bytes]]:
    """Give every case as what goes over the socket, without the newline at its end."""
    asked = [*((name, {"command": line}) for name, line in LINES.items()), *argvs()]
    for number, (name, params) in enumerate(asked):
        call = {**_ENVELOPE, "id": number, "params": {"twoPhase": True, **params}}
        yield name, json.dumps(call).encode()
    yield from raw_lines()
