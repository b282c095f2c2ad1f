"""One value of a YAML text is set or removed, and every byte outside its lines stays as it is.

An edit is a splice at the marks of the parser. Comments and block scalars make several places possible, so each edit is
tried, read again and compared with the wanted tree: an edit that changed anything else is not made.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from gateway.yaml_source.node_paths import KeyPath, find_node, put_node, remove_node
from gateway.yaml_source.parser import parse_yaml
from gateway.yaml_source.tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, is_null

Outline: TypeAlias = "dict[str, Outline] | list[Outline] | tuple[str, bool]"
"""The content of a tree: mappings, lists, and scalars with whether they are quoted; no places."""

_PLAIN = re.compile(r"-?[A-Za-z0-9_./~$+][A-Za-z0-9_./~$+@%-]*(?:[ :=][A-Za-z0-9_./~$+@%-]+)*\Z")
_UNSAFE = re.compile(r"[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_COMMENT = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_BREAK = re.compile(r"\r\n|\r|\n")
BOM = "\ufeff"


class EditError(ValueError):
    """The text does not allow for this edit; what it says goes on after the name of the setting."""


def set_value(data: bytes, path: KeyPath, value: YamlNode) -> bytes:
    """Return the text with this value under these keys; sections that are missing are made.

    Raises:
        EditError: no edit leaves everything else as it is.
    """
    written = format_node(value)
    node = find_node(_read_tree(f"_: {written}".encode()), ("_",)) or value
    wanted = put_node(_read_tree(data), path, node)
    if find_node(wanted, path) is None:
        raise EditError("cannot be written: its section is not a mapping")
    return _choose(wanted, _list_settings(_MarkedText(data), path, written))


def remove_value(data: bytes, path: KeyPath) -> bytes:
    """Return the text without this key, and without the sections that are empty then.

    Raises:
        EditError: no edit leaves everything else as it is.
    """
    tree = _read_tree(data)
    if find_node(tree, path) is None:
        raise EditError("is not set in the file")
    while len(path) > 1 and isinstance(above := find_node(tree, path[:-1]), YamlMapping) and len(above.pairs) == 1:
        path = path[:-1]
    return _choose(remove_node(tree, path), _list_removals(_MarkedText(data), path))


def format_node(node: YamlNode) -> str:
    """Write a node on one line: text plain where it stays the same text, else quoted as JSON."""
    match node:
        case YamlMapping(pairs=pairs):
            return f"{{{', '.join(f'{_format_text(key.text)}: {format_node(below)}' for key, below in pairs)}}}"
        case YamlSequence(items=items):
            return f"[{', '.join(map(format_node, items))}]"
        case YamlScalar(text=text, quoted=quoted):
            return _quote(text) if quoted else _format_text(text)


def format_lines(path: KeyPath, written: str, indent: int = 0) -> list[str]:
    """Write a value below its sections, a line each."""
    *above, last = map(_format_text, path)
    lines = [f"{' ' * (indent + 2 * depth)}{key}:" for depth, key in enumerate(above)]
    return [*lines, f"{' ' * (indent + 2 * len(above))}{last}: {written}"]


def find_line_break(text: str) -> str:
    """Return the first line break of a text, which its new lines get too."""
    found = _BREAK.search(text)
    return found[0] if found else "\n"


def _format_text(text: str) -> str:
    return text if _PLAIN.match(text) and ": " not in text and text != "~" else _quote(text)


def _quote(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _read_tree(data: bytes) -> YamlNode:
    document = parse_yaml(data, "")
    if wrong := next((one for one in document.findings if one.severity == "error"), None):
        raise EditError(f"cannot be written: line {wrong.place.line}: {wrong.what}; {wrong.remedy}")
    return YamlMapping(document.root.place) if is_null(document.root) else document.root


def _outline(node: YamlNode) -> Outline:
    match node:
        case YamlMapping(pairs=pairs):
            return {key.text: _outline(below) for key, below in pairs}
        case YamlSequence(items=items):
            return [_outline(item) for item in items]
        case YamlScalar(text=text, quoted=quoted):
            return text, quoted


def _choose(wanted: YamlNode, edits: Iterator[str]) -> bytes:
    outline = _outline(wanted)
    for text in edits:
        changed = text.encode("utf-8")
        try:
            if _outline(_read_tree(changed)) == outline:
                return changed
        except EditError:
            continue
    raise EditError("cannot be written without a change to other lines")


class _MarkedText:
    """A text and its nodes; the positions are those of the parser, which does not count a byte order mark."""

    def __init__(self, data: bytes) -> None:
        text = data.decode("utf-8")
        self.bom = BOM if text.startswith(BOM) else ""
        self.text = text.removeprefix(BOM)
        self.root = yaml.compose(self.text, Loader=yaml.CSafeLoader)
        self.line_break = find_line_break(self.text)

    def splice(self, start: int, end: int, new: str) -> str:
        return f"{self.bom}{self.text[:start]}{new}{self.text[end:]}"

    def insert_lines(self, at: int, lines: list[str]) -> str:
        """Put lines behind the line that ends at `at`."""
        before = "" if not at or self.text[at - 1] in "\r\n" else self.line_break
        after = self.line_break if not before or at == len(self.text) else ""
        return self.splice(at, at, f"{before}{self.line_break.join(lines)}{after}")

    def end_of_line(self, at: int) -> int:
        """Find the end of a line behind its last value: a comment belongs to it."""
        found = _COMMENT.match(self.text, at)
        return found.end() if found else at

    def start_of_line(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def after_break(self, at: int) -> int:
        found = _BREAK.match(self.text, at)
        return found.end() if found else at

    def ends(self, node: Any) -> list[int]:
        """List the places where a node may end: a block's mark is behind comments, a block scalar's behind blanks.

        The first is the end of the last thing that is written in it.
        """
        leaf = _find_last_leaf(node)
        end = leaf.end_mark.index
        if isinstance(leaf, yaml.ScalarNode) and leaf.style in ("|", ">"):
            short = leaf.start_mark.index + len(self.text[leaf.start_mark.index : end].rstrip("\r\n \t"))
            whole = leaf.start_mark.index + len(self.text[leaf.start_mark.index : end].rstrip("\r\n"))
            return list(dict.fromkeys((self.end_of_line(short), self.end_of_line(whole), end)))
        return [self.end_of_line(end)]


def _find_last_leaf(node: Any) -> Any:
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _list_settings(text: _MarkedText, path: KeyPath, written: str) -> Iterator[str]:
    node, key = text.root, None
    for depth, name in enumerate(path):
        pair = _find_pair(node, name)
        if pair is None:
            yield from _list_insertions(text, node, key, path[depth:], written)
            return
        key, node = pair
    yield from _list_replacements(text, key, node, written)


def _find_pair(node: Any, name: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((pair for pair in pairs if pair[0].value == name), None)


def _list_replacements(text: _MarkedText, key: Any, node: Any, written: str) -> Iterator[str]:
    start, end = node.start_mark.index, node.end_mark.index
    colon = text.text.find(":", key.end_mark.index, max(start, key.end_mark.index)) + 1
    if start == end or (isinstance(node, yaml.CollectionNode) and not node.flow_style):
        if not colon:
            yield text.splice(start, start, f": {written}")
            return
        between = text.text[colon:start]
        kept = between[: text.start_of_line(start) - colon].rstrip("\r\n") if start > colon else ""
        for last in [start] if start == end else text.ends(node):
            yield text.splice(colon, last, f" {written}{kept if '#' in kept else ''}")
    elif isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        for last in text.ends(node):
            yield text.splice(start, last, written)
        yield text.splice(start, end, written + text.line_break)
    else:
        yield text.splice(start, end, written)


def _list_insertions(text: _MarkedText, node: Any, key: Any, path: KeyPath, written: str) -> Iterator[str]:
    """Yield the pair behind the last one of its section; a section without a value gets its first one."""
    flow = written
    for name in reversed(path[1:]):
        flow = f"{{{_format_text(name)}: {flow}}}"
    pair = f"{_format_text(path[0])}: {flow}"
    if node is None or (key is None and not isinstance(node, yaml.MappingNode)):
        yield text.insert_lines(len(text.text), format_lines(path, written))
    elif not isinstance(node, yaml.MappingNode):
        line_end = text.end_of_line(node.end_mark.index)
        if node.start_mark.index == node.end_mark.index:
            yield text.insert_lines(line_end, format_lines(path, written, key.start_mark.column + 2))
        yield from _list_replacements(text, key, node, f"{{{pair}}}")
    elif node.flow_style:
        at = node.value[-1][1].end_mark.index if node.value else node.start_mark.index + 1
        yield text.splice(at, at, f", {pair}" if node.value else pair)
    else:
        for at in text.ends(node):
            yield text.insert_lines(at, format_lines(path, written, node.value[0][0].start_mark.column))


def _list_removals(text: _MarkedText, path: KeyPath) -> Iterator[str]:
    node: Any = text.root
    for name in path[:-1]:
        node = _find_pair(node, name)[1]
    at = [key.value for key, _ in node.value].index(path[-1])
    key, value = node.value[at]
    if node.flow_style:
        if at:
            start, end = node.value[at - 1][1].end_mark.index, value.end_mark.index
        else:
            start = key.start_mark.index
            end = node.value[1][0].start_mark.index if len(node.value) > 1 else value.end_mark.index
        yield text.splice(start, max(end, key.end_mark.index), "")
        return
    start = text.start_of_line(key.start_mark.index)
    for end in text.ends(value):
        yield text.splice(start, text.after_break(max(end, text.end_of_line(key.end_mark.index))), "")
