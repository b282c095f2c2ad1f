"""A network that nobody has: letters in a folder come in, others go out. It proves that a folder is enough."""
