"""YAML that knows where it stands: every node keeps its file, line and column, and every finding names them.

Nothing is guessed from a scalar's look before its type is known: the text is kept, and the type that the reader wants
decides what it means. So `no` is a word where text is wanted and false where a boolean is wanted, and `1:30`, `010` and
dates keep their text. No value is ever repeated in a finding: it may be a secret in the wrong line.

    tree = read_yaml(path)
    manifest, findings = bind(tree, Manifest)
"""

from gateway.located.bind import bind
from gateway.located.reader import parse_yaml, read_yaml
from gateway.located.tree import Finding, Located, Mapping, Node, Place, Scalar, Sequence, Severity, plain
from gateway.located.units import Duration, Size

__all__ = [
    "Duration",
    "Finding",
    "Located",
    "Mapping",
    "Node",
    "Place",
    "Scalar",
    "Sequence",
    "Severity",
    "Size",
    "bind",
    "parse_yaml",
    "plain",
    "read_yaml",
]
