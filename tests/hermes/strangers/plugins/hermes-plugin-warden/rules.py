"""Found by the name that the plugin has, which is not that of its folder."""

CLOSED = frozenset({"closed.txt"})
