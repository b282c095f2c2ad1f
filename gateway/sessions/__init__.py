"""Sessions: conversations under their keys, folded from the journal.

Import less common parts from their modules: `transitions`, `removal`, `export`, `search`, `retention`.
"""
