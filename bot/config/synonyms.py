"""Other spellings of the same setting, folded into their one canonical place before anything else looks."""

from __future__ import annotations

from dataclasses import replace

from pydantic.alias_generators import to_camel, to_snake

from bot.config.tree import Node, Parts, Problems, path_text, to_python


def fold(root: Node, problems: Problems) -> Node:
    """Return one file's tree with every synonym in its canonical place; contradictions are reported."""
    if root.mapping is None:
        return root
    folder = _Folder(problems)
    root = folder.move(root, (), "sandbox", ("sandboxing",))
    root = folder.list_into(root, (), "providers", ("tools", "byProvider"), unwrap="tools")
    agents = root.child("agents")
    if agents is None or agents.mapping is None:
        return root
    agents = folder.list_into(agents, ("agents",), "list", ())
    folded = {
        name: agent if name == "defaults" else folder.agent(agent, ("agents", name))
        for name, agent in (agents.mapping or {}).items()
    }
    return replace(root, value={**(root.mapping or {}), "agents": replace(agents, value=folded)})


class _Folder:
    """Moves values and reports where two places say different things."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def agent(self, agent: Node, path: Parts) -> Node:
        """Fold the synonyms of one agent."""
        agent = self.move(agent, path, "profile", ("tools", "profile"))
        tools = agent.child("tools")
        if tools is not None and tools.child("exec") is not None:
            agent = self._move_below(agent, path, "tools", "exec", ("exec",))
        return self._move_below(
            agent, path, "sandbox", "alsoAllow", ("tools", "sandbox", "tools", "alsoAllow")
        )

    def move(self, node: Node, path: Parts, key: str, target: tuple[str, ...]) -> Node:
        """Move the value of a key, in either spelling, to another place below the same node."""
        for spelling in dict.fromkeys((key, to_snake(key))):
            moved = node.child(spelling)
            if moved is not None:
                rest = {name: child for name, child in (node.mapping or {}).items() if name != spelling}
                node = self._put(replace(node, value=rest), target, moved, path)
        return node

    def list_into(
        self, node: Node, path: Parts, key: str, target: tuple[str, ...], unwrap: str | None = None
    ) -> Node:
        """Fold a list of mappings with an `id` each (or a mapping by id) into a mapping by id."""
        listed = node.child(key)
        if listed is None:
            return node
        node = replace(
            node, value={name: child for name, child in (node.mapping or {}).items() if name != key}
        )
        for entry_id, entry, where in self._by_id(listed, (*path, key)):
            inner = self._unwrapped(entry, unwrap, where)
            if inner is not None:
                node = self._put(node, (*target, entry_id), inner, path)
        return node

    def _by_id(self, listed: Node, path: Parts) -> list[tuple[str, Node, Parts]]:
        if listed.mapping is not None:
            return [(name, child, (*path, name)) for name, child in listed.mapping.items()]
        if listed.items is None:
            self._problems.add(listed.origin, path_text(path), "must be a list of mappings, each with an id")
            return []
        found: list[tuple[str, Node, Parts]] = []
        seen: dict[str, Node] = {}
        for index, entry in enumerate(listed.items):
            own = entry.child("id")
            if own is None or not isinstance(own.value, str) or not own.value:
                self._problems.add(entry.origin, path_text((*path, index)), "needs an id, in text")
                continue
            if own.value in seen:
                text = f"is {own.value!r} again (first in line {seen[own.value].origin.line}); keep one"
                self._problems.add(own.origin, path_text((*path, index, "id")), text)
                continue
            seen[own.value] = own
            rest = {name: child for name, child in (entry.mapping or {}).items() if name != "id"}
            found.append((own.value, replace(entry, value=rest), (*path, index)))
        return found

    def _unwrapped(self, entry: Node, key: str | None, path: Parts) -> Node | None:
        if key is None:
            return entry
        for name, child in (entry.mapping or {}).items():
            if name != key:
                text = f"is no known key; only {key} counts here"
                self._problems.add(child.origin, path_text((*path, name)), text)
        return entry.child(key)

    def _move_below(self, node: Node, path: Parts, section: str, key: str, target: tuple[str, ...]) -> Node:
        below = node.child(section)
        if below is None or below.mapping is None:
            return node
        for spelling in dict.fromkeys((key, to_snake(key))):
            moved = below.child(spelling)
            if moved is not None:
                rest = {name: child for name, child in (below.mapping or {}).items() if name != spelling}
                below = replace(below, value=rest)
                node = replace(node, value={**(node.mapping or {}), section: below})
                node = self._put(node, target, moved, path)
                below = node.child(section) or below
        return node

    def _put(self, node: Node, target: tuple[str, ...], moved: Node, path: Parts) -> Node:
        if not target:
            return self._joined(node, moved, path)
        head, *rest = target
        entries = dict(node.mapping or {})
        key = next((name for name in (head, to_snake(head), to_camel(head)) if name in entries), head)
        here = entries.get(key)
        if here is None or here.value is None:
            entries[key] = self._wrapped(moved, tuple(rest))
        else:
            entries[key] = self._put(here, tuple(rest), moved, (*path, key))
        return replace(node, value=entries)

    def _wrapped(self, moved: Node, target: tuple[str, ...]) -> Node:
        for key in reversed(target):
            moved = Node({key: moved}, moved.origin)
        return moved

    def _joined(self, first: Node, second: Node, path: Parts) -> Node:
        if first.mapping is not None and second.mapping is not None:
            merged = dict(first.mapping)
            for key, child in second.mapping.items():
                merged[key] = self._joined(merged[key], child, (*path, key)) if key in merged else child
            return replace(first, value=merged)
        if to_python(first) != to_python(second):
            early, late = sorted((first.origin, second.origin), key=lambda origin: origin.line)
            lines = f"lines {early.line} and {late.line}"
            text = f"is written in two places with different values ({lines}); keep one"
            self._problems.add(late, path_text(path), text)
        return first
