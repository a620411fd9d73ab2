"""Variables, secret files and the home directory, put into the values that name them."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.config.marks import Source, read_marked
from bot.config.schema import shape_of, value_types
from bot.config.tree import Node, Parts, Problems, path_text
from bot.mend import run_on
from core.config import Agents, AgentSettings, Config

_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = "file:"


@dataclass(slots=True)
class Substitution:
    """Puts values in; `files` is told how each secret file stood that was read."""

    env: Mapping[str, str] = field(repr=False)
    problems: Problems
    files: dict[Path, Source] = field(default_factory=dict)

    def apply(self, node: Node, annotation: Any = Config, path: Parts = ()) -> Node:  # noqa: ANN401 - a type expression
        """Return the tree with everything put in."""
        shape = shape_of(annotation)
        if node.mapping is not None:
            inner = value_types(shape.model) if shape.model else {}
            each = AgentSettings if shape.model is Agents else shape.each_entry
            entries = node.mapping.items()
            return replace(
                node,
                value={key: self.apply(child, inner.get(key, each), (*path, key)) for key, child in entries},
            )
        if node.items is not None:
            items = enumerate(node.items)
            return replace(
                node, value=tuple(self.apply(item, shape.each_item, (*path, i)) for i, item in items)
            )
        return self._text(node, node.value, path, home=shape.path) if isinstance(node.value, str) else node

    def _text(self, node: Node, text: str, path: Parts, *, home: bool) -> Node:
        filled = self._variables(node, text, path)
        if filled is None:
            return replace(node, value="", secret=True)
        if node.secret and filled.startswith(_FILE):
            filled = self._secret_file(node, filled.removeprefix(_FILE), path)
        if home and filled.startswith("~/"):
            filled = self._at_home(node, filled, path)
        return replace(node, value=filled, written=node.written if node.written is not None else text)

    def _variables(self, node: Node, text: str, path: Parts) -> str | None:
        wrong: list[str] = []

        def put_in(match: re.Match[str]) -> str:
            name = match.group(1)
            if name is None:
                return "${"
            if not _NAME.fullmatch(name) or not match.group(0).endswith("}"):
                wrong.append("holds ${ that begins no ${NAME}; write $${ for the characters themselves")
            elif name not in self.env:
                wrong.append(
                    f"needs the environment variable {name}, which is not set; set it or remove the key"
                )
            return self.env.get(name, "")

        filled = _VARIABLE.sub(put_in, text)
        for problem in wrong:
            self.problems.add(node.origin, path_text(path), problem)
        return None if wrong else filled

    def _secret_file(self, node: Node, name: str, path: Parts) -> str:
        problem, secret = self._read_secret(Path(name))
        if problem:
            self.problems.add(
                node.origin, path_text(path), f"names the secret file {name!r}, which {problem}"
            )
            return "-"
        return secret

    def _read_secret(self, path: Path) -> tuple[str | None, str]:
        if not path.is_absolute():
            return "is not an absolute path; begin it with /", ""
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                return "is not a plain file", ""
            if stat.S_IMODE(mode) & stat.S_IRWXO:
                return f"every user of this machine can open; close it: {run_on(path, 'chmod o-rwx')}", ""
            content, self.files[path] = read_marked(path)
            text = content.decode()
        except OSError as problem:
            return f"cannot be read ({problem.strerror}); check the path and its owner", ""
        except UnicodeDecodeError:
            return "is not UTF-8 text", ""
        secret = text.rstrip("\r\n")
        return (None, secret) if secret else ("is empty", "")

    def _at_home(self, node: Node, text: str, path: Parts) -> str:
        home = self.env.get("HOME", "")
        if not home.startswith("/"):
            self.problems.add(
                node.origin, path_text(path), "uses ~/, but HOME is not set; write the whole path"
            )
            return "/"
        return f"{home.rstrip('/')}{text[1:]}"
