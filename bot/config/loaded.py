"""Files, environment and flags ▶ one checked configuration that knows where each value is written."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from bot.config.enforcement import warnings_of
from bot.config.marks import Mark, Source
from bot.config.overrides import Overrides, apply_overrides
from bot.config.schema import canonical
from bot.config.substitution import Substitution
from bot.config.synonyms import fold
from bot.config.tree import Node, Origin, Problems, from_python, leaves, locate, overlay
from bot.config.validation import report_hopeless_lists, validate
from bot.config.way import Way, way_to
from bot.config.yaml_file import read_file
from core.config import Agents, Config
from core.errors import ConfigError
from core.model.decision import is_default

_DEFAULTS = Origin("defaults")
_ROW = Origin("this row's config")
_KEPT_MERGES = 256
_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, eq=False)
class LoadedConfig:
    """The configuration in force; two are the same only where they are one object, so caches may key on it.

    `protected_paths` are absolute paths that no agent may touch: configuration files and secret files.
    `files` are the former alone, in the order in which they were read; `piped` names, as they were given,
    what came by a pipe or has no name any more, so that it cannot be read again.
    `marks` tells how those stood that this was read from, `ways` what was met on the way to each.
    """

    config: Config
    warnings: tuple[str, ...] = ()
    protected_paths: tuple[str, ...] = ()
    tree: Node = field(default=Node({}, _DEFAULTS), repr=False)
    files: tuple[str, ...] = ()
    piped: tuple[str, ...] = ()
    marks: Mapping[str, Mark] = field(default_factory=dict, repr=False)
    ways: Mapping[str, Way] = field(default_factory=dict, repr=False)
    _merges: OrderedDict[str, LoadedConfig] = field(default_factory=OrderedDict, repr=False, compare=False)

    def where(self, path: str, *, exact: bool = False) -> str | None:
        """Tell file and line of a configuration path, or of the nearest key that encloses it.

        With `exact` a key that nobody wrote has no place: its value is the default. So has a source that
        says so itself.
        """
        if is_default(path):
            return None
        node, rest = locate(self.tree, path)
        if node is self.tree or (exact and rest):
            return None
        return str(node.origin)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of all secrets, so that they can be masked wherever they turn up."""
        return tuple(dict.fromkeys(str(leaf.value) for _, leaf in leaves(self.tree) if leaf.secret))

    def redacted(self) -> dict[str, Any]:
        """Give the effective configuration as written in a file, secrets as `***`."""
        shown: dict[str, Any] = _shown(self.config)
        return shown

    def merge(self, extra: Mapping[str, Any]) -> LoadedConfig:
        """Lay a JSON object over this configuration; repeated ones cost next to nothing."""
        if not extra:
            return self
        key = json.dumps(extra, sort_keys=True)
        merged = self._merges.pop(key, None) or self._merged(extra)
        self._merges[key] = merged
        if len(self._merges) > _KEPT_MERGES:
            self._merges.popitem(last=False)
        return merged

    def _merged(self, extra: Mapping[str, Any]) -> LoadedConfig:
        problems = Problems()
        over = _checked(from_python(extra, _ROW), problems)
        tree = overlay(self.tree, over)
        config = validate(tree, problems)
        problems.raise_if_any()
        return replace(self, config=_present(config), tree=tree, _merges=OrderedDict())


def load(
    paths: Sequence[Path],
    *,
    env: Mapping[str, str],
    overrides: Overrides = _NO_OVERRIDES,
    pipes: bool = True,
) -> LoadedConfig:
    """Read the files in order, each over the ones before; raises one ConfigError that tells all problems.

    Without `pipes` one that is no regular file is such a problem, and nobody is waited for.
    """
    problems = Problems([str(path) for path in paths])
    tree = Node({}, _DEFAULTS)
    files: dict[Path, Source] = {}
    for root in _readable(paths, files, pipes=pipes):
        tree = replace(overlay(tree, _checked(root, problems)), origin=_DEFAULTS)
    substitution = Substitution(env, problems, files)
    tree = apply_overrides(substitution.apply(tree), overrides, env, problems)
    config = validate(tree, problems)
    if config is not None:
        report_hopeless_lists(tree, config, problems)
    problems.raise_if_any()
    present = _present(config)
    sources = {kept: source for path, source in files.items() if (kept := _kept(path)) is not None}
    marks = {path: source.mark for path, source in sources.items()}
    ways = {path: source.way or _way_again(path) for path, source in sources.items()}
    named = [(str(path), _kept(path)) for path in paths]
    read = tuple(kept for _, kept in named if kept is not None and Path(kept).is_file())
    piped = tuple(given for given, kept in named if kept not in read)
    return LoadedConfig(present, warnings_of(present), tuple(marks), tree, read, piped, marks, ways)


def merge(loaded: LoadedConfig, extra: Mapping[str, Any]) -> LoadedConfig:
    """Lay a JSON object over a loaded configuration, for one row of `explain` or `tools`."""
    return loaded.merge(extra)


def _kept(path: Path) -> str | None:
    """Return the path of a file that is to be protected; what came by a pipe lies nowhere."""
    if not str(path.absolute()).startswith(("/dev/", "/proc/")):
        return str(path.absolute())
    real = path.resolve()  # of a file without a name, as a shell's here-document, there is nothing at that
    return str(real) if real.is_file() else None


def _way_again(path: str) -> Way:
    """Look at the way by which a file will be read again that came as a descriptor."""
    try:
        return way_to(path)
    except OSError:
        return ()


def _readable(paths: Sequence[Path], files: dict[Path, Source], *, pipes: bool) -> list[Node]:
    roots, refused = [], []
    for path in paths:
        try:
            roots.append(read_file(path, files, pipes=pipes))
        except ConfigError as problem:
            refused.append(str(problem))
    if refused:
        raise ConfigError("\n".join(refused))
    return roots


def _checked(root: Node, problems: Problems) -> Node:
    return canonical(fold(root, problems), Config, problems) or Node({}, root.origin)


def _present(config: Config | None) -> Config:
    if config is None:
        raise ConfigError("the configuration could not be read")
    return config


def _shown(value: Any) -> Any:  # noqa: ANN401 - any value of the models
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, Agents):
        return {"defaults": _shown(value.defaults), **_shown(value.by_id)}
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        return {field.alias or name: _shown(getattr(value, name)) for name, field in fields}
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_shown(item) for item in value]
    return value.value if isinstance(value, Enum) else value
