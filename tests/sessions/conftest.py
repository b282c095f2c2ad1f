"""A journal on each engine."""

from tests.spine import engine

__all__ = ["engine"]
