"""Sessions: conversations under their keys, folded from the journal.

What only some need is imported from its module: `transitions`, `removal`, `export`, `search`, `retention`.
"""
