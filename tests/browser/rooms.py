"""The rooms of the page, a line each: a new one is a new line here, and every test of rooms walks through it too."""

from typing import NamedTuple

from tests.browser.busy_home import ACTING, PROGRAM


class Room(NamedTuple):
    """`address` is the part behind the `#`; `shows`: a text that appears once the gateway has answered."""

    address: str
    title: str
    shows: str

    @property
    def name(self) -> str:
        """For a test and its pictures."""
        return self.address.replace("/", "-").replace("%3Fq%3D", "search-").partition("%")[0]


ROOMS = (
    Room("overview", "Overview", "replies owed"),
    Room("inbox", "Inbox", "Nothing waits for an answer"),
    Room("hooks", "Hooks", "it is waited for, and may change or stop"),
    Room("hooks/moody", "Hooks", ACTING),
    Room("hooks/tripping", "Hooks", "failed 5 times in a row"),
    Room("hooks/lacking", "Hooks", "no-such-package-77"),
    Room("conversations", "Conversations", "talk0"),
    Room("conversations/%3Fq%3Dgateway", "Conversations", "Found: gateway"),
    Room("letters", "Dead letters", "gave up"),
    Room("networks", "Networks", "/webhooks/audit"),
    Room("events", "Events", "as they happen"),
    Room("chat", "Chat", "New conversation"),
    Room("people", "People", PROGRAM),
    Room("usage", "Usage", "each_person terminal:owner"),
    Room("usage/model/7", "Usage", "script"),
    Room("logs", "Logs", "serves"),
    Room("logs/%3Flevel%3Dwarning", "Logs", "warning"),
    Room("configuration", "Configuration", "model.script"),
    Room("activity", "Activity", "page.login"),
)
