"""YAML that knows where it stands: every node keeps its file, line and column, and every finding names them.

Nothing is guessed from a scalar's look before its type is known: the text is kept, and the type that the reader wants
decides what it means. So `no` is a word where text is wanted and false where a boolean is wanted, and `1:30`, `010` and
dates keep their text. No value is ever repeated in a finding: it may be a secret in the wrong line.

    tree = read_yaml(path)
    manifest, findings = bind(tree, Manifest)
"""
