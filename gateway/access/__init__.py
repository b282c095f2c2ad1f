"""Who may speak to the gateway: the rules that a person wrote, and the people who were let in by a code."""

from gateway.access.gate import INTERNAL, Access, Rules, Scope
from gateway.access.pairing import Pairings

__all__ = ["INTERNAL", "Access", "Pairings", "Rules", "Scope"]
