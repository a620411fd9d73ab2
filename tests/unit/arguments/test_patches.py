"""Patches: every file they touch is known, and what could be read in two ways is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.arguments.patch import read_patch
from core.arguments.unclear import UnclearArgumentError


def files(text: str) -> list[tuple[str, str]]:
    return [(file.action.value, file.path) for file in read_patch(text)]


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_every_kind_of_change_in_an_envelope_is_read():
    text = envelope(
        "*** Add File: new dir/a b.txt",
        "+one",
        "+*** Delete File: not one",
        "*** Delete File: /srv/old",
        "*** Update File: src/x.py",
        "@@ def f():",
        " same",
        "-old",
        "+new",
        "",
        "@@",
        "--- comment of SQL",
        "*** End of File",
        "*** Update File: a",
        "*** Move to: b",
    )
    expected = [
        ("add", "new dir/a b.txt"),
        ("delete", "/srv/old"),
        ("update", "src/x.py"),
        ("move-from", "a"),
        ("move-to", "b"),
    ]
    assert files(text) == files(text + "\n") == expected


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("*** Add File: ",),
        ("*** Add File:a",),
        ("*** Add File:  a",),
        ("*** Add File: a ",),
        ("*** Add File: a/",),
        ('*** Add File: "a"',),
        ("*** Add File: 'a'",),
        ("*** Add File: ~/a",),
        ("*** Add File: a\tb",),
        (" *** Add File: a",),
        ("*** add file: a",),
        ("***Add File: a",),
        ("**** Add File: a",),
        ("*** Create File: a",),
        ("*** Rename File: a",),
        ("*** Environment ID: x", "*** Add File: a"),
        ("*** Add File: a", "text"),
        ("*** Add File: a", ""),
        ("*** Add File: a", " text"),
        ("*** Add File: a", "+x", "*** Add File: a"),
        ("*** Add File: a", "+x", "*** Delete File: ./x/../a"),
        ("*** Add File: a", "+x\r"),
        ("*** Add File: a\r", "+x"),
        ("*** Add File: a", "+x\u2028*** Delete File: b"),
        ("*** Add File: a", "+x\x0c*** Delete File: b"),
        ("*** Add File: a", "+x\0"),
        ("*** Add File: a", "+x", "*** Move to: b"),
        ("*** Delete File: a", "-x"),
        ("*** Delete File: a", "*** Move to: b"),
        ("*** Update File: a",),
        ("*** Update File: a", "*** Delete File: b"),
        ("*** Update File: a", "@@", "-x", "*** Move to: b"),
        ("*** Update File: a", "*** Move to: b", "*** Move to: c"),
        ("*** Update File: a", "*** Move to: a", "@@", "-x"),
        ("*** Update File: a", "@@@ x", "-x"),
        ("*** Update File: a", "@@", "-x", " *** Delete File: b"),
        ("*** Update File: a", "@@", "-x", "\t*** Delete File: b"),
        ("*** Update File: a", "@@", "-x", "   ***  UPDATE file: b"),
        ("*** Update File: a", "@@", "--- a/b", "+++ b/b", "@@ -1 +1 @@"),
        ("*** Update File: a", "@@", "-x", "diff --git a/b b/b"),
        ("*** Update File: a", "@@", "-x", "*** End Patch", "*** Begin Patch", "*** Delete File: b"),
        ("*** Move to: b",),
        ("+x",),
    ],
)
def test_what_an_envelope_may_not_hold_is_refused(lines):
    with pytest.raises(UnclearArgumentError):
        files(envelope(*lines))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "hello",
        "*** Begin Patch",
        "*** Begin Patch\n*** Delete File: a",
        "*** Begin Patch\n*** Delete File: a\n*** End Patch\n\n",
        "*** Begin Patch\n*** Delete File: a\n*** End Patch\n*** Delete File: b",
        " *** Begin Patch\n*** Delete File: a\n*** End Patch",
        "*** Begin Patch \n*** Delete File: a\n*** End Patch",
        "\n*** Begin Patch\n*** Delete File: a\n*** End Patch",
        "*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch",
        "<<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
        "\ufeff*** Begin Patch\n*** Delete File: a\n*** End Patch",
    ],
)
def test_what_stands_around_an_envelope_is_refused(text):
    with pytest.raises(UnclearArgumentError):
        files(text)


HUNK = "@@ -1,2 +1,2 @@ def f():\n same\n-old\n+new"


def test_every_kind_of_change_in_a_unified_diff_is_read():
    text = "\n".join(
        [
            "--- a/plain\n+++ b/plain\n" + HUNK + "\n@@ -9 +9 @@\n-a\n+b",
            "diff --git a/x b/x\nindex 12ab34c..56de78f 100644\n--- a/x\n+++ b/x\n" + HUNK,
            "diff --git a/n b/n\nnew file mode 100755\nindex 0000000..56de78f\n--- /dev/null\n+++ b/n",
            "@@ -0,0 +1 @@\n+x",
            "\\ No newline at end of file",
            "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x",
            "diff --git a/o b/p\nsimilarity index 90%\nrename from o\nrename to p\n--- a/o\n+++ b/p\n" + HUNK,
            "diff --git a/q b/r\nsimilarity index 100%\nrename from q\nrename to r",
            "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n",
        ]
    )
    assert files(text) == [
        ("update", "plain"),
        ("update", "x"),
        ("add", "n"),
        ("delete", "d"),
        ("move-from", "o"),
        ("move-to", "p"),
        ("move-from", "q"),
        ("move-to", "r"),
        ("update", "m"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"--- x\n+++ x\n{HUNK}",
        f"--- a/x\n+++ x\n{HUNK}",
        f"--- b/x\n+++ a/x\n{HUNK}",
        f"--- a/x\n+++ b/y\n{HUNK}",
        f"--- a//etc/x\n+++ b//etc/x\n{HUNK}",
        f"--- /etc/x\n+++ /etc/x\n{HUNK}",
        f"--- a/../x\n+++ b/../x\n{HUNK}",
        f"--- a/./x\n+++ b/./x\n{HUNK}",
        f"--- a/x y\n+++ b/x y\n{HUNK}",
        f"--- a/x\t2020-01-01\n+++ b/x\t2020-01-01\n{HUNK}",
        f'--- "a/x"\n+++ "b/x"\n{HUNK}',
        f"--- a/x\\n\n+++ b/x\\n\n{HUNK}",
        f"--- a/\n+++ b/\n{HUNK}",
        f"--- /dev/null\n+++ /dev/null\n{HUNK}",
        f"--- a/x\r\n+++ b/x\r\n{HUNK}",
        f" --- a/x\n +++ b/x\n{HUNK}",
        f"text before\n--- a/x\n+++ b/x\n{HUNK}",
        f"Index: y\n--- a/x\n+++ b/x\n{HUNK}",
        f"--- a/x\n+++ b/x\n{HUNK}\ntext behind",
        f"--- a/x\n+++ b/x\n{HUNK}\n\n",
        f"--- a/x\n+++ b/x\n{HUNK}\n+more",
        f"--- a/x\n+++ b/x\n{HUNK}\n--- a/x\n+++ b/x\n{HUNK}",
        "--- a/x\n+++ b/x",
        "--- a/x",
        "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n same\n-old\n+new",
        "--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n same\n-old\n+new",
        "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-old\n+new\n-more\n+again",
        "--- a/x\n+++ b/x\n@@ bad @@\n-a\n+b",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/y\n+++ b/y",
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-old\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b",
        f"diff --git a/x b/y\n--- a/x\n+++ b/y\n{HUNK}",
        f"diff --git a/x b/x\n--- a/y\n+++ b/y\n{HUNK}",
        f"diff --git a/x b/y\nrename from x\nrename to z\n--- a/x\n+++ b/y\n{HUNK}",
        f"diff --git a/x b/y\nrename from x\n--- a/x\n+++ b/y\n{HUNK}",
        "diff --git a/x b/y\nrename from x\nrename from x\nrename to y",
        "diff --git a/x b/y\ncopy from x\ncopy to y",
        "diff --git a/x b/x",
        "diff --git a/x b/x\nindex 12ab34c..56de78f 100644",
        f"diff --git a/x b/x\nindex 12ab34c..56de78f 120000\n--- a/x\n+++ b/x\n{HUNK}",
        "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd",
        f"diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n{HUNK}",
        f"diff --git a/x b/x\n--- /dev/null\n+++ b/x\n{HUNK}",
        "diff --git a/x b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+x",
        "diff --git a/x b/x\nGIT binary patch\nliteral 0",
        "diff --git a/x b/x\nBinary files a/x and b/x differ",
        "diff --git a/x x b/x x\nold mode 100644\nnew mode 100755",
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n\n",
        "*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b",
    ],
)
def test_what_a_unified_diff_may_not_hold_is_refused(text):
    with pytest.raises(UnclearArgumentError):
        files(text)


def test_the_refusal_names_the_line():
    with pytest.raises(UnclearArgumentError, match=r"^line 3 of the patch is neither"):
        files(envelope("*** Add File: a", "oops"))


def test_a_patch_of_very_many_files_is_refused():
    assert len(files(envelope(*(f"*** Delete File: f{n}" for n in range(500))))) == 500
    with pytest.raises(UnclearArgumentError, match="more than 500"):
        files(envelope(*(f"*** Delete File: f{n}" for n in range(501))))


_LINE = st.one_of(
    st.sampled_from(
        [
            "*** Begin Patch",
            "*** End Patch",
            "*** Add File: a",
            "*** Add File: b/c",
            "*** Update File: d",
            "*** Update File: e",
            "*** Move to: f",
            "*** Delete File: g",
            "*** End of File",
            "diff --git a/x b/x",
            "diff --git a/x b/y",
            "new file mode 100644",
            "deleted file mode 100644",
            "old mode 100644",
            "new mode 100755",
            "rename from x",
            "rename to y",
            "--- a/x",
            "+++ b/x",
            "--- a/y",
            "+++ b/y",
            "--- /dev/null",
            "+++ /dev/null",
            "@@ -1 +1 @@",
            "@@ -0,0 +1 @@",
            "@@ -1,2 +1,2 @@",
            "@@",
            "+x",
            "-x",
            " x",
            "",
            "--- z",
            "+++ z",
        ]
    ),
    st.text("*+-@ \tabx/.", max_size=12),
    st.text(max_size=8),
)
_PATCHES = st.one_of(
    st.lists(_LINE, max_size=8),
    st.lists(_LINE, max_size=6).map(lambda body: ["*** Begin Patch", *body, "*** End Patch"]),
    st.lists(_LINE, max_size=6).map(
        lambda body: ["*** Begin Patch", "*** Update File: u", *body, "*** End Patch"]
    ),
    st.lists(_LINE, max_size=6).map(lambda body: ["--- a/x", "+++ b/x", "@@ -1 +1 @@", *body]),
)


def _lenient(text: str) -> set[str]:
    """Find every file that any careless reader might find: blanks, case and line ends do not matter to it."""
    found: set[str] = set()
    lines = text.splitlines()
    in_envelope = lines[:1] == ["*** Begin Patch"]
    for index, line in enumerate(lines):
        header = re.match(r"\s*\*\*\*\s*(?:add|update|delete) file:\s*(.*?)\s*$", line, re.IGNORECASE)
        moved = re.match(r"\s*\*\*\*\s*move to:\s*(.*?)\s*$", line, re.IGNORECASE)
        found.update(match[1] for match in (header, moved) if match)
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            found.update(name.split("/", 1)[-1] for name in (line[4:], following[4:]) if name != "/dev/null")
        if not in_envelope and (renamed := re.match(r"(?:rename|copy) (?:from|to) (.*)", line)):
            found.add(renamed[1])
        if git := re.match(r"diff --git a/(\S+) b/(\S+)", line):
            found.update(git.groups())
    return found


@settings(max_examples=1000, deadline=None)
@given(lines=_PATCHES)
@example(lines=["*** Begin Patch", "*** Update File: u", " *** Delete File: g", "*** End Patch"])
@example(lines=["*** Begin Patch", "*** Update File: u", "--- a/x", "+++ b/x", "*** End Patch"])
def test_no_line_of_an_accepted_patch_names_a_file_that_was_not_judged(lines):
    text = "\n".join(lines)
    try:
        known = {file.path for file in read_patch(text)}
    except UnclearArgumentError:
        return
    assert _lenient(text) == known


@settings(max_examples=500, deadline=None)
@given(
    names=st.lists(
        st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5}){0,2}", fullmatch=True), min_size=1, max_size=5, unique=True
    ),
    data=st.data(),
)
def test_a_well_formed_envelope_is_always_accepted(names, data):
    body: list[str] = []
    plain = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=20)
    for name in names:
        kind = data.draw(st.sampled_from(["Add", "Delete", "Update"]))
        body.append(f"*** {kind} File: {name}")
        if kind == "Update":
            body += ["@@", "-" + data.draw(plain).lstrip("-"), "+" + data.draw(plain).lstrip("+")]
        elif kind == "Add":
            body.append("+" + data.draw(plain))
    assert [path for _, path in files(envelope(*body))] == names
