"""The conversion of bytes into a tree with places, by libyaml's events: nothing is constructed, nothing is executed.

A file is data of unknown origin. Features that are useless here and can be abused are refused: tags, anchors and
aliases, more than one document, deep nesting, over-long files, control characters. Reading goes on after a finding, so
that all are reported together; only a breach of YAML's own grammar ends it.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from gateway.files.folders import read_plain_file
from gateway.yaml_source.tree import (
    Finding,
    SourceLocation,
    YamlDocument,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    to_printable,
)

MAX_DEPTH = 40
MAX_FINDINGS = 100

# Characters that are neither printable in YAML nor text. (As a set of allowed ones it takes 4 ms to compile.)
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|[\ud800-\udfff\ufffe\uffff]")
_INDENTED_BY_TAB = re.compile(r" *\t")
_BROKEN = "could not be read as YAML"


def read_yaml(path: Path, limit: int = 1_000_000, name: str = "") -> YamlDocument:
    """Read a file of at most `limit` bytes. Its faults are in the findings, and nothing is raised.

    `name` replaces the file's path in places, if the path says too much.
    """
    source = name or str(path)
    try:
        data = read_plain_file(path, limit + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return _empty_document(
            source, Finding(SourceLocation(source), f"cannot be read: {reason}", "make it a readable text file")
        )
    if len(data) > limit:
        what, remedy = f"larger than {limit:,} bytes", "keep it to what is needed; nothing that long belongs here"
        return _empty_document(source, Finding(SourceLocation(source), what, remedy))
    return parse_yaml(data, source)


def parse_yaml(data: bytes, source: str) -> YamlDocument:
    """Read the tree in these bytes; `source` names them in findings."""
    text, broken = _decode_text(data, source)
    if broken:
        return _empty_document(source, broken)
    builder = _TreeBuilder(source)
    try:
        root = builder.document(text)
    except yaml.YAMLError as error:
        builder.found(_describe_syntax_error(error, text, source))
        root = None
    return YamlDocument(root or YamlMapping(SourceLocation(source, 1, 1)), tuple(builder.findings))


def _decode_text(data: bytes, source: str) -> tuple[str, Finding | None]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        return "", Finding(_location_after(before, source), "this is not UTF-8 text", "save the file as UTF-8")
    if odd := _NOT_TEXT.search(text):
        place = _location_after(text[: odd.start()], source)
        what = f"the character U+{ord(odd[0]):04X} is not text"
        return "", Finding(place, what, "remove it; a configuration is a text file")
    return text, None


def _location_after(before: str, source: str) -> SourceLocation:
    lines = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", before)
    return SourceLocation(source, len(lines), len(lines[-1]) + 1)


def _empty_document(source: str, finding: Finding) -> YamlDocument:
    return YamlDocument(YamlMapping(SourceLocation(source, 1, 1)), (finding,))


def _describe_syntax_error(error: yaml.YAMLError, text: str, source: str) -> Finding:
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return Finding(SourceLocation(source), _BROKEN, "check its quotes, brackets and indentation")
    place = SourceLocation(source, mark.line + 1, mark.column + 1)
    if _INDENTED_BY_TAB.match("".join(text.splitlines(keepends=True)[mark.line : mark.line + 1])):
        return Finding(place, "a tab in the indentation", "indent with spaces")
    problem = to_printable(" ".join(filter(None, (error.context, error.problem))) or _BROKEN, 200)
    return Finding(place, problem, "check the quotes, brackets and indentation of this line and the one before")


class _TreeBuilder(msgspec.Struct, eq=False):
    """Folds the parser's events into nodes; without recursion, since depth is the sender's to choose."""

    source: str
    findings: list[Finding] = []
    _open: list["_OpenNode"] = []
    _root: YamlNode | None = None

    def found(self, finding: Finding) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)

    def document(self, text: str) -> YamlNode | None:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            match event:
                case yaml.DocumentStartEvent():
                    if self._root is not None:
                        self.found(Finding(self._place(event), "a second document begins", "keep one document a file"))
                        break
                case yaml.ScalarEvent():
                    self._refuse_extras(event)
                    self._add(YamlScalar(self._place(event), event.value, quoted=not event.implicit[0]))
                case yaml.AliasEvent():
                    self.found(Finding(self._place(event), "an alias (`*name`)", "write the value itself"))
                    self._add(YamlScalar(self._place(event), ""))
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._refuse_extras(event)
                    if not self._begin(event):
                        break
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._add(self._open.pop().closed(self))
        return self._root

    def _place(self, event: Any) -> SourceLocation:
        return SourceLocation(self.source, event.start_mark.line + 1, event.start_mark.column + 1)

    def _refuse_extras(self, event: Any) -> None:
        if event.tag is not None:
            self.found(Finding(self._place(event), "a tag (`!name`)", "remove it; quote the value to make it text"))
        if event.anchor is not None:
            self.found(Finding(self._place(event), "an anchor (`&name`)", "write the value where it is needed"))

    def _begin(self, event: Any) -> bool:
        self._open.append(_OpenNode(self._place(event), isinstance(event, yaml.MappingStartEvent)))
        if len(self._open) > MAX_DEPTH:
            what = f"nested deeper than {MAX_DEPTH} levels"
            self.found(Finding(self._place(event), what, "flatten it; no setting is that deep"))
        return len(self._open) <= MAX_DEPTH

    def _add(self, node: YamlNode) -> None:
        if self._open:
            self._open[-1].nodes.append(node)
        else:
            self._root = node


class _OpenNode(Struct):
    """A sequence or mapping whose end has not come yet; a mapping's nodes are its keys and values in turn."""

    place: SourceLocation
    is_mapping: bool
    nodes: list[YamlNode] = []

    def closed(self, builder: _TreeBuilder) -> YamlNode:
        if not self.is_mapping:
            return YamlSequence(self.place, tuple(self.nodes))
        seen: dict[str, YamlScalar] = {}
        pairs = []
        for key, value in zip(self.nodes[::2], self.nodes[1::2], strict=True):
            if not isinstance(key, YamlScalar):
                builder.found(Finding(key.place, "a key that is a list or a mapping", "use a word as the key"))
            elif key.text in seen:
                first = seen[key.text].place.line
                what = f"`{to_printable(key.text)}` stands here a second time; the first is in line {first}"
                builder.found(Finding(key.place, what, "keep one of the two"))
            else:
                seen[key.text] = key
                pairs.append((key, value))
        return YamlMapping(self.place, tuple(pairs))
