"""Lines that mean one thing only, and near ones that do not."""

from __future__ import annotations

import pytest

from tests.shell_world import effect, look

EMOJI = ["❤️", "👩‍💻", "👩🏽‍💻", "🏳️‍🌈", "🧑‍🤝‍🧑", "⚠️ done", "🎉", "1️⃣ #️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿x"]


@pytest.mark.parametrize("text", EMOJI)
def test_pictures_are_words_like_others(text: str) -> None:
    facts = look(f"echo '{text}'")
    assert facts.analysable
    assert look(facts.canonical).canonical == facts.canonical
    assert facts.segments[0].argv[1] == text
    assert effect(f"echo '{text}'", ask="off") == "allow"
    assert effect(f"id '{text}'", ask="off") == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "a\ufe0f",
        "\ufe0f",
        "1\ufe0f",
        "1\ufe0fx",
        "a\ufe0f\u20e3",
        "\u20e3\ufe0f",
        "x\U0001d159y",
        "\U0001d159\ufe0f",
        "x\U00016fe4y",
        "\U0001f3f4\U000e0072\U000e006d\U000e007f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067",
        "\U000e0067\U000e0062\U000e007f",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿\U000e0067",
        "a\u200db",
        "\u200d💻",
        "👩\u200d",
        "👩\u200da",
        "a\u200d💻",
        "❤\ufe0f\ufe0f",
        "❤\ufe0e",
        "👩\u200d\u200d💻",
        "\u2800\ufe0f",
        "a\ufe0f\u200d💻x",
        "❤\u200b",
        "❤\u202e",
        "/\u200d❤",
    ],
)
def test_what_joins_no_pictures_is_still_invisible(text: str) -> None:
    refused = look(f"rg '{text}'").refused
    assert refused
    assert refused[0].construct == "invisible-character"


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("rg x |\\\n cat", "/usr/bin/rg x | /usr/bin/cat"),
        ("rg x |\\\ncat", "/usr/bin/rg x | /usr/bin/cat"),
        ("rg x &&\\\n  cat y", "/usr/bin/rg x && /usr/bin/cat y"),
        ("rg x ||\\\n  cat y", "/usr/bin/rg x || /usr/bin/cat y"),
        ("rg x | \\\n cat", "/usr/bin/rg x | /usr/bin/cat"),
    ],
)
def test_a_line_may_go_on_behind_an_operator(line: str, canonical: str) -> None:
    assert look(line).canonical == canonical
    assert effect(line, "/usr/bin/rg", "/usr/bin/cat", ask="off") == "allow"
    assert effect(line, "/usr/bin/rg", ask="off") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "rg x |\\\n| id",
        "rg x &\\\n& id",
        "rg x |\\\n& id",
        "rg x |\\\n; id",
        "rg x |\\\n\n id",
        "rg x |\\\n\\\n id",
        "rg x |\\\n",
        "rg x |\\\n(id)",
        "rg x &\\\n> y",
        "rg x |\\\n# y",
        "rg x 2>&\\\n1",
        "rg x|\\\n |id",
    ],
)
def test_but_not_where_that_makes_another_operator(line: str) -> None:
    assert look(line).refused
    assert effect(line, "**", ask="off") == "deny"
