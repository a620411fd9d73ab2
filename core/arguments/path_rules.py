"""Which rule of a list concerns a place."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from core.arguments import path_globs
from core.arguments.path_globs import PathGlob, is_below
from core.arguments.places import Follow, Place
from core.arguments.surroundings import Surroundings, WrittenRule


def catching_rule(
    place: Place, rules: Sequence[WrittenRule], around: Surroundings, follow: Follow
) -> WrittenRule | None:
    """Return the first rule that means the place by any of its names; one that cannot be read means all."""
    return next((rule for rule in rules if _catches(rule.text, place, around, follow)), None)


def admitting_rule(
    place: Place, rules: Sequence[WrittenRule], around: Surroundings, follow: Follow
) -> WrittenRule | None:
    """Return the first rule that means where the place really is."""
    return next((rule for rule in rules if _admits(rule.text, place, around, follow)), None)


def reaching_rule(
    place: Place, rules: Sequence[WrittenRule], around: Surroundings, follow: Follow
) -> WrittenRule | None:
    """Return the first rule that means a directory or anything that may lie in it."""
    return next((rule for rule in rules if _reaches(rule.text, place, around, follow)), None)


def covering_rule(
    place: Place, rules: Sequence[WrittenRule], around: Surroundings, follow: Follow
) -> WrittenRule | None:
    """Return the first rule that means a directory and all that lies in it."""
    whole = [rule for rule in rules if _covers_below(rule.text, around)]
    return admitting_rule(place, whole, around, follow)


def _catches(text: str, place: Place, around: Surroundings, follow: Follow) -> bool:
    glob = path_globs.catching(text, home=around.home, workspace=around.workspace)
    directory = _is_directory(place)
    if glob is None or any(glob.catches(name, directory=directory) for name in place.names):
        return True
    moved = _resolved_as_far(glob, follow)
    return moved != glob and moved.catches(place.real.path, directory=directory)


def _reaches(text: str, place: Place, around: Surroundings, follow: Follow) -> bool:
    glob = path_globs.catching(text, home=around.home, workspace=around.workspace)
    if glob is None or _catches(text, place, around, follow):
        return True
    moved = _resolved_as_far(glob, follow)
    return any(each.reaches_below(name) for each in (glob, moved) for name in place.names)


def _covers_below(text: str, around: Surroundings) -> bool:
    glob = path_globs.admitting(text, home=around.home, workspace=around.workspace)
    return glob is not None and glob.covers_below


def _admits(text: str, place: Place, around: Surroundings, follow: Follow) -> bool:
    glob = path_globs.admitting(text, home=around.home, workspace=around.workspace)
    if glob is None:
        return False
    real, directory = place.real.path, _is_directory(place)
    if glob.matches(real, directory=directory):
        return True
    moved = _resolved(glob, follow)
    if moved is None or moved == glob or not moved.matches(real, directory=directory):
        return False
    return not _led_out_of_workspace(glob, moved, around, follow)


def _is_directory(place: Place) -> bool:
    return place.real.kind == "directory"


def _resolved(glob: PathGlob, follow: Follow) -> PathGlob | None:
    """Follow the links in what stands before the first wildcard; None where they cannot be followed."""
    if not glob.prefix:
        return glob
    real = follow(glob.prefix)
    return None if real is None else glob.at(real.path)


def _resolved_as_far(glob: PathGlob, follow: Follow) -> PathGlob:
    """Follow the links in the prefix as far as Sayso may look: `/root/.ssh` has a meaning for others too."""
    head, rest = glob.prefix, ""
    while head and head != "/":
        real = follow(head)
        if real is not None:
            return glob.at(real.path.rstrip("/") + rest)
        head, base = posixpath.split(head)
        rest = f"/{base}{rest}"
    return glob


def _led_out_of_workspace(glob: PathGlob, moved: PathGlob, around: Surroundings, follow: Follow) -> bool:
    """Tell whether a directory that the agent can exchange for a link leads a rule elsewhere."""
    workspace = follow(around.workspace)
    homes = {around.workspace, workspace.path if workspace else around.workspace}
    inside = any(glob.prefix != home and is_below(glob.prefix, home) for home in homes)
    return inside and (workspace is None or not is_below(moved.prefix, workspace.path))
