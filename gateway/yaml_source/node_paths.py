"""Nodes of a tree by their paths: found, put in, taken out; the place of each; and texts as nodes."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from gateway.yaml_source.tree import SourceLocation, YamlMapping, YamlNode, YamlScalar, YamlSequence

KeyPath: TypeAlias = tuple[str, ...]
Shape: TypeAlias = Literal["text", "list", "flag"]


def node_of(text: str, place: SourceLocation, shape: Shape) -> YamlNode:
    """Convert a value from outside into a node, as the file would hold it; commas separate the items of a list."""
    if shape == "flag":
        return YamlScalar(place, {"1": "true", "0": "false"}.get(text, text))
    if shape == "text":
        return YamlScalar(place, text)
    items = (item.strip() for item in text.strip().removeprefix("[").removesuffix("]").split(","))
    return YamlSequence(place, tuple(YamlScalar(place, item) for item in items if item))


def find_node(tree: YamlNode, path: KeyPath) -> YamlNode | None:
    """Return the node at this path, or None."""
    node: YamlNode | None = tree
    for key in path:
        node = node.get(key) if isinstance(node, YamlMapping) else None
    return node


def put_node(tree: YamlNode, path: KeyPath, node: YamlNode) -> YamlNode:
    """Return the tree with this node at this path. A section that is not a mapping is replaced only if it is empty."""
    if not path:
        return node
    if not isinstance(tree, YamlMapping):
        if not (isinstance(tree, YamlScalar) and tree.text in ("", "~", "null")):
            return tree  # a wrong section stays, to be found wrong
        tree = YamlMapping(tree.place)
    key, rest = path[0], path[1:]
    below = tree.get(key)
    changed = put_node(below if below is not None else YamlMapping(node.place), rest, node)
    if below is None:
        return YamlMapping(tree.place, (*tree.pairs, (YamlScalar(node.place, key), changed)))
    return YamlMapping(tree.place, tuple((name, changed if name.text == key else value) for name, value in tree.pairs))


def remove_node(tree: YamlNode, path: KeyPath) -> YamlNode:
    """Return the tree without the node at this path."""
    if not isinstance(tree, YamlMapping):
        return tree
    key, rest = path[0], path[1:]
    kept = [(name, value) for name, value in tree.pairs if rest or name.text != key]
    return YamlMapping(
        tree.place, tuple((name, remove_node(value, rest) if name.text == key else value) for name, value in kept)
    )


def list_origins(tree: YamlNode, path: KeyPath = ()) -> Iterator[tuple[str, SourceLocation]]:
    """Yield each value that was set, by its whole name, with its place."""
    if isinstance(tree, YamlMapping):
        for name, value in tree.pairs:
            yield from list_origins(value, (*path, name.text))
    elif path:
        yield ".".join(path), tree.place
