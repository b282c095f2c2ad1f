"""The verbs of the port: keys that let programs in, and links that let people in."""

import msgspec

from gateway.messages.roles import KeyRole
from gateway.verbs import NameParams, NoParams, Verb


class KeyCreateParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key of this name, for a program that may do what this role may, and speak to this agent, if to any."""

    name: str
    role: KeyRole
    agent: str = ""

    @property
    def rights(self) -> str:
        """As the record of activity has them."""
        return f"as {self.role}" + (f" for {self.agent}" if self.agent else "")


VERBS = (
    Verb("keys.create", "Create an API key.", KeyCreateParams, "admin", on="{name} {rights}", raw=True),
    Verb("keys.list", "List API keys.", NoParams, "admin", page="look", raw=True),
    Verb("keys.revoke", "Revoke an API key.", NameParams, "admin", on="{name}", raw=True),
    Verb("web.open", "Make a link to the page.", NoParams, "owner", on="", raw=True),
    Verb("web.end", "End all logins to the page.", NoParams, "owner", on="", raw=True),
)
