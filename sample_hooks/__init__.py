"""Hooks to copy from, and the index that names them: it lies here, so that it is in what is installed."""
