"""Sessions: conversations under their keys, folded from their records in the journal.

Import less common parts from their modules: `transitions`, `removal`, `export`, `search`, `retention`.
"""
