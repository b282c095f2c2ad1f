"""A module of Hermes's gateway that only patches have a use for: its names are there, and without effect."""

from gateway.hooks.wires.process.hermes.elsewhere import standing_in

__getattr__ = standing_in(__name__)
