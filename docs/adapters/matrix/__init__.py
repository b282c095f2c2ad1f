"""Matrix, by matrix-nio, on the adapter kit alone. It reads rooms that are not encrypted."""
