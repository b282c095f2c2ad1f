"""hermes-gateway: chat with an AI agent through the networks that you already use, extended by hooks."""

__version__ = "0.1.0"
