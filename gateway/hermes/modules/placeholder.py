"""A module of Hermes's gateway that only patches have a use for: its names are there, and without effect."""

from gateway.hermes.shim.placeholders import make_placeholder_getattr

__getattr__ = make_placeholder_getattr(__name__)
