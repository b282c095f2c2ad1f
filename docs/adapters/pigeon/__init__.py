"""A network that nobody has: letters in a folder come in, others go out. The smallest adapter that is whole."""
