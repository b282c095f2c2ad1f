"""Who may speak to the gateway: the rules that a person wrote, and the people who were let in by a code."""

from gateway.access.access_control import INTERNAL, AccessControl
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules

__all__ = ["INTERNAL", "AccessControl", "AccessRules", "Pairings"]
