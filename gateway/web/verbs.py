"""The verbs of the port: API keys of programs, and links to the page for people."""

import msgspec

from gateway.messages.roles import KeyRole
from gateway.verbs import NameParams, NoParams, Verb


class KeyCreateParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a new key: its name, the role that it has, and the agent that it may speak to, if any."""

    name: str
    role: KeyRole
    agent: str = ""

    @property
    def rights(self) -> str:
        """The key's rights in the words of the activity record."""
        return f"as {self.role}" + (f" for {self.agent}" if self.agent else "")


VERBS = (
    Verb("keys.create", "Create an API key.", KeyCreateParams, "admin", on="{name} {rights}", raw=True),
    Verb("keys.list", "List API keys.", NoParams, "admin", page="look", raw=True),
    Verb("keys.revoke", "Revoke an API key.", NameParams, "admin", on="{name}", raw=True),
    Verb("web.open", "Create a login link to the page.", NoParams, "owner", raw=True),
    Verb("web.end", "End all logins to the page.", NoParams, "owner", on="", raw=True),
)
