"""Who may speak to the gateway: the rules that a person wrote, and the people who were let in by a code."""

from gateway.access.access_control import API, INTERNAL, WEB, AccessControl
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules, PeopleGroup

__all__ = ["API", "INTERNAL", "WEB", "AccessControl", "AccessRules", "Pairings", "PeopleGroup"]
