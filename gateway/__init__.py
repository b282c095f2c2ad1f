"""hermes-gateway: chat with an AI agent through the networks that you already use, extended by hooks."""

# pyproject.toml has it too, for what builds us: to read it from there costs each command a tenth of a second.
__version__ = "0.2.0.dev0"
