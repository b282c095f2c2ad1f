"""The rooms of the page, a line each: a new one is a new line here, and every test of rooms walks through it too."""

import re
from typing import NamedTuple

from tests.browser.busy_home import ACTING, PROGRAM


class Room(NamedTuple):
    """`address` is the part behind the `#`, and `way` what leads to it; `shows` appears once the gateway has answered.

    `title` is its first line, where that is not the way's name.
    """

    address: str
    way: str
    shows: str
    title: str = ""

    @property
    def name(self) -> str:
        """For a test and its pictures."""
        return re.sub("%3A|/", "-", self.address.replace("%3Fq%3D", "search-")).partition("%")[0]

    @property
    def first_line(self) -> re.Pattern[str]:
        """Match the whole of it."""
        return re.compile(f"^{self.title or re.escape(self.way)}$")


ROOMS = (
    Room("overview", "Overview", "Time to answer", r"\d+ things need you"),
    Room("hooks", "Hooks", "watch only"),
    Room("hooks/moody", "Hooks", ACTING, "moody"),
    Room("hooks/tripping", "Hooks", "failed 5 times in a row", "tripping"),
    Room("hooks/lacking", "Hooks", "no-such-package-77", "lacking"),
    Room("undelivered", "Hooks", "gave up", "3 events were not delivered"),
    Room("conversations", "Conversations", "talk0"),
    Room("conversations/%3Fq%3Dgateway", "Conversations", "Where", "Found: gateway"),
    Room("chat", "Chat", "send"),
    Room("jobs", "Jobs", "server-watch"),
    Room("jobs/backup-notes", "Jobs", "2 failed", "backup-notes"),
    Room("people", "People", PROGRAM),
    Room("people/terminal%3Aowner", "People", "Calls of the model", "terminal:owner"),
    Room("settings", "Settings", "model.script"),
    Room("networks", "Networks", "/webhooks/audit"),
    Room("costs", "Costs", "each person: terminal:owner"),
    Room("costs/model/7", "Costs", "script"),
    Room("live", "Live", "as they happen"),
    Room("logs", "Logs", "serves"),
    Room("logs/%3Flevel%3Dwarning", "Logs", "warning"),
    Room("deeds", "Who did what", "page.login"),
)
