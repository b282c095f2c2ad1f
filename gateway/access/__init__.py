"""Who may speak to the gateway: the rules that a person wrote, and the people who were let in by a code."""

from gateway.access.access_control import INTERNAL, AccessControl, AccessLevel, AccessRules, is_admin
from gateway.access.pairing import Pairings

__all__ = ["INTERNAL", "AccessControl", "AccessLevel", "AccessRules", "Pairings", "is_admin"]
