"""YAML with places: every node keeps its file, line and column, and every finding names them.

A scalar's meaning is not guessed from its look: the text is kept, and the type that the reader wants decides its
meaning. So `no` is a word for a text field and false for a boolean, and `1:30`, `010` and dates keep their text. A
finding never repeats a value: it may be a secret in the wrong line.

Three modules read texts that have a meaning of their own: durations and sizes (`units`), recurring times (`timetable`),
network addresses and URLs (`addresses`).

    tree = read_yaml(path)
    manifest, findings = bind(tree, Manifest)
"""
