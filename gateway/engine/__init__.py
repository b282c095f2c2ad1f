"""The journal: what it promises stands in `interface`; one SQLite file keeps it, or memory alone."""
