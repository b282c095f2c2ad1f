"""Values from outside laid over the tree of the file, each keeping its own place; and where each value came from."""

from collections.abc import Iterator

from gateway.config.layers import Value
from gateway.config.names import KeyPath, Shape
from gateway.located import Mapping, Node, Place, Scalar, Sequence


def node_of(value: Value, shape: Shape) -> Node:
    """A value from outside as the file would write it; a list is separated by commas."""
    if shape == "flag":
        return Scalar(value.place, {"1": "true", "0": "false"}.get(value.text, value.text))
    if shape == "text":
        return Scalar(value.place, value.text)
    items = (item.strip() for item in value.text.strip().removeprefix("[").removesuffix("]").split(","))
    return Sequence(value.place, tuple(Scalar(value.place, item) for item in items if item))


def found(tree: Node, path: KeyPath) -> Node | None:
    """The node under these keys."""
    node: Node | None = tree
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def laid(tree: Node, path: KeyPath, node: Node) -> Node:
    """The tree with this node under these keys; a section that is no mapping gives way only if it is empty."""
    if not path:
        return node
    if not isinstance(tree, Mapping):
        if not (isinstance(tree, Scalar) and tree.text in ("", "~", "null")):
            return tree  # a wrong section stays, to be found wrong
        tree = Mapping(tree.place)
    key, rest = path[0], path[1:]
    below = tree.get(key)
    changed = laid(below if below is not None else Mapping(node.place), rest, node)
    if below is None:
        return Mapping(tree.place, (*tree.pairs, (Scalar(node.place, key), changed)))
    return Mapping(tree.place, tuple((name, changed if name.text == key else value) for name, value in tree.pairs))


def without(tree: Node, path: KeyPath) -> Node:
    """The tree without what stands under these keys."""
    if not isinstance(tree, Mapping):
        return tree
    key, rest = path[0], path[1:]
    kept = ((name, without(value, rest) if name.text == key else value) for name, value in tree.pairs)
    return Mapping(tree.place, tuple((name, value) for name, value in kept if rest or name.text != key))


def origins(tree: Node, path: KeyPath = ()) -> Iterator[tuple[str, Place]]:
    """Each value that was set, by its whole name, with its place."""
    if isinstance(tree, Mapping):
        for name, value in tree.pairs:
            yield from origins(value, (*path, name.text))
    elif path:
        yield ".".join(path), tree.place
