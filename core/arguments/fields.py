"""Which arguments of a file tool hold paths, in the spellings that real clients use."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from core.arguments.patch import read_patch
from core.arguments.patched import Action
from core.arguments.places import shown
from core.arguments.search_globs import check_search_glob
from core.arguments.unclear import UnclearArgumentError
from core.policy.names import normalise
from core.shell.word_list import word_list


class Use(Enum):
    """What is done: an edit reads too, a removal writes nothing, a search reads all that is below."""

    READ = "read"
    SEARCH = "searched"
    WRITE = "written"
    EDIT = "edited"
    REMOVE = "deleted"


@dataclass(frozen=True, slots=True)
class Target:
    """A path as the call has it, what is done there, and how many bytes the call brings."""

    path: str
    use: Use
    brings: int = 0


_PATH = word_list(
    """
    path file file_path filePath filepath file_name fileName filename absolute_path absolutePath
    target_file targetFile notebook_path notebookPath
    """
)
_CONTENT = word_list("content contents file_text fileText new_source newSource text")
_REPLACEMENT = word_list("new_string newString new_str newText new_text insert_text code_edit")
# What holds text that no client takes for a path.
_PROSE = (
    _CONTENT
    | _REPLACEMENT
    | word_list(
        """
    old_string oldString old_str oldText old_text instruction instructions explanation description
    reason justification detail pages encoding line_range view_range mode edit_mode cell_id cellId
    cell_type cellType language
    """
    )
)
_EDITS = "edits"
_IMAGE, _IMAGES = "image", "images"
_IMAGE_PROSE = _PROSE | {"prompt", "model", "question"}
_ADDRESSES = ("http://", "https://", "data:")
_DIRECTORY = _PATH | {"dir_path", "dirPath", "directory"}
_SEARCH_GLOBS = word_list("glob include exclude ignore")
_SEARCH_PROSE = word_list("pattern glob include exclude ignore type output_mode query description")
_READ = "read"
_SEARCHES = word_list("glob grep grep_files ls list_dir")
_PATCH = word_list("command input patch")
_PATCH_PROSE = word_list("description explanation call_id type")
_OPERATION = "operation"
_OPERATIONS = MappingProxyType(
    {"create_file": "*** Add File: ", "update_file": "*** Update File: ", "delete_file": "*** Delete File: "}
)

USES = MappingProxyType({_READ: Use.READ, "write": Use.WRITE, "edit": Use.EDIT})
_OF_ACTION = MappingProxyType(
    {
        Action.ADD: Use.WRITE,
        Action.UPDATE: Use.EDIT,
        Action.DELETE: Use.REMOVE,
        Action.MOVE_FROM: Use.EDIT,
        Action.MOVE_TO: Use.WRITE,
    }
)
_APPLY_PATCH = "apply_patch"
FILE_TOOLS = frozenset({*USES, _IMAGE, _APPLY_PATCH})


def targets_of(tool: str, args: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return every path in a call of a file tool, under any of its names; raises UnclearArgumentError."""
    asked, name = tool.strip().casefold(), normalise(tool)
    if name == _APPLY_PATCH:
        return _patched(args)
    if asked in _SEARCHES or (name == _READ and "pattern" in args):
        return (_searched(asked, args),)
    if name == _IMAGE:
        return _pictures(args)
    _refuse_unjudged(args, _PATH | _PROSE, edits=True)
    path = _one(args, _PATH)
    if path is None:
        raise UnclearArgumentError("the call names no file; send its path in path or file_path")
    return (Target(path, USES[name], _size(args)),)


def _pictures(args: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return the pictures that are files; addresses are judged by the rules of the web."""
    fields = _PATH | {_IMAGE}
    _refuse_unjudged(_without(args, {_IMAGES}), fields | _IMAGE_PROSE)
    one, several = _one(args, fields), args.get(_IMAGES) or ()
    if not _only_texts(several):
        raise UnclearArgumentError(f"argument {_IMAGES} must be a list of texts")
    paths = [*([one] if one else []), *several]
    if not paths:
        raise UnclearArgumentError("the call names no picture; send its path in image")
    return tuple(Target(path, Use.READ) for path in paths if not path.casefold().startswith(_ADDRESSES))


def _searched(asked: str, args: Mapping[str, Any]) -> Target:
    """Return the directory that a tool like Grep looks through; without one it is the working directory."""
    several = {name for name in _SEARCH_GLOBS & args.keys() if _only_texts(args[name])}
    _refuse_unjudged(_without(args, several), _DIRECTORY | _SEARCH_PROSE)
    if asked in {"glob", _READ}:  # the others take a regular expression, or none
        check_search_glob(args.get("pattern", ""))
    return Target(_one(args, _DIRECTORY) or ".", Use.SEARCH)


def _patched(args: Mapping[str, Any]) -> tuple[Target, ...]:
    if _OPERATION in args:
        _refuse_unjudged(_without(args, {_OPERATION}), _PATCH_PROSE)
        text = _from_operation(args[_OPERATION])
    else:
        _refuse_unjudged(_without(args, _PATCH), _PATCH_PROSE)
        given = _one({name: _unwrapped(args[name]) for name in _PATCH & args.keys()}, _PATCH)
        if given is None:
            raise UnclearArgumentError("the call brings no patch; send it in input or patch")
        text = given
    return tuple(Target(file.path, _OF_ACTION[file.action], file.brings) for file in read_patch(text))


def _unwrapped(value: Any) -> Any:  # noqa: ANN401 - whatever the agent sent
    """Take the patch out of `["apply_patch", patch]`, the form of clients that send an argv."""
    is_argv = isinstance(value, (list, tuple)) and len(value) == 2  # noqa: PLR2004 - as above
    return value[1] if is_argv and value[0] == _APPLY_PATCH else value


def _from_operation(operation: Any) -> str:  # noqa: ANN401 - as above
    """Write `{type, path, diff}` as the patch that it is."""
    fields = dict(operation) if isinstance(operation, Mapping) else {}
    header = _OPERATIONS.get(str(fields.pop("type", None)))
    path, diff = fields.pop("path", None), fields.pop("diff", None) or ""
    if header is None or fields or not isinstance(path, str) or not isinstance(diff, str) or "\n" in path:
        raise UnclearArgumentError(
            f"argument operation must be a type ({', '.join(_OPERATIONS)}), a path and a diff"
        )
    body = f"{diff.removesuffix(chr(10))}\n" if diff else ""
    return f"*** Begin Patch\n{header}{path}\n{body}*** End Patch"


def _one(args: Mapping[str, Any], fields: frozenset[str]) -> str | None:
    """Return the text in these fields; where two differ, only the client knew which one counts."""
    held = {name: args[name] for name in sorted(fields & args.keys()) if args[name] is not None}
    for name, value in held.items():
        if not isinstance(value, str) or not value:
            raise UnclearArgumentError(f"argument {name} must be a text that is not empty")
    if len(set(held.values())) > 1:
        raise UnclearArgumentError(f"arguments {' and '.join(held)} differ; send one of them")
    return next(iter(held.values()), None)


def _without(args: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if name not in names}


def _only_texts(value: Any) -> bool:  # noqa: ANN401 - as above
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


def _refuse_unjudged(args: Mapping[str, Any], known: frozenset[str], *, edits: bool = False) -> None:
    """Refuse what a client that knows the argument might take for a path; numbers and flags never are.

    A known argument is text, or it could hold paths of its own.
    """
    for name, value in args.items():
        fine = _holds_no_path(value) or (name in known and isinstance(value, str))
        if not fine and not (edits and name == _EDITS and _only_prose(value)):
            raise UnclearArgumentError(
                f"argument {shown(str(name))!r} is not judged here and might name a file; leave it out"
            )


def _only_prose(edits: Any) -> bool:  # noqa: ANN401 - as above
    if not isinstance(edits, (list, tuple)) or not all(isinstance(edit, Mapping) for edit in edits):
        return False
    pairs = [pair for edit in edits for pair in edit.items()]
    return all(_holds_no_path(value) or (name in _PROSE and isinstance(value, str)) for name, value in pairs)


def _holds_no_path(value: Any) -> bool:  # noqa: ANN401 - as above
    if isinstance(value, Mapping):
        return all(_holds_no_path(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return all(_holds_no_path(each) for each in value)
    return value is None or isinstance(value, (int, float))


def _size(args: Mapping[str, Any]) -> int:
    """Count the bytes that a call brings: one text under whatever name, and that of each of its edits."""
    edits = args.get(_EDITS)
    several = edits if isinstance(edits, (list, tuple)) else ()
    return _text_size(args) + sum(_text_size(edit) for edit in several if isinstance(edit, Mapping))


def _text_size(args: Mapping[str, Any]) -> int:
    texts = (args[name] for name in (_CONTENT | _REPLACEMENT) & args.keys())
    return max((len(text.encode(errors="replace")) for text in texts if isinstance(text, str)), default=0)
