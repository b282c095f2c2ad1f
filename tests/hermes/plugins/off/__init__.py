"""Would break if anybody ran it."""

raise RuntimeError("nobody switched this on")
