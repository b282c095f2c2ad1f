"""The journal. `interface` holds its contract; one SQLite file or plain memory stores it."""
