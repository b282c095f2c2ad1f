"""YAML that knows where it stands: every node keeps its file, line and column, and every finding names them.

Nothing is guessed from a scalar's look before its type is known: the text is kept, and the type that the reader wants
decides what it means. So `no` is a word where text is wanted and false where a boolean is wanted, and `1:30`, `010` and
dates keep their text. No value is ever repeated in a finding: it may be a secret in the wrong line.

    tree = read_yaml(path)
    manifest, findings = bind(tree, Manifest)
"""

from gateway.yaml_source.binder import ONE_OR_MORE, bind, inspect_type
from gateway.yaml_source.parser import parse_yaml, read_yaml
from gateway.yaml_source.tree import (
    Finding,
    Severity,
    SourceLocation,
    YamlDocument,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    to_plain,
)
from gateway.yaml_source.units import Duration, Size

__all__ = [
    "ONE_OR_MORE",
    "Duration",
    "Finding",
    "Severity",
    "Size",
    "SourceLocation",
    "YamlDocument",
    "YamlMapping",
    "YamlNode",
    "YamlScalar",
    "YamlSequence",
    "bind",
    "inspect_type",
    "parse_yaml",
    "read_yaml",
    "to_plain",
]
