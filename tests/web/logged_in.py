"""Somebody who was let in to the page of a running gateway, by the bytes that a browser sends."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from gateway.testing import GatewayProcess
from tests.web.visits import Visit, send, visit


def open_link(gateway: GatewayProcess) -> str:
    return str(json.loads(gateway.cli("open", "--json").stdout)["url"])


def log_in(gateway: GatewayProcess) -> "Browser":
    return Browser(open_link(gateway))


class Browser:
    """Somebody who was let in: their cookie, and the token that the page told them."""

    def __init__(self, url: str) -> None:
        link = urlsplit(url)
        self.url = f"{link.scheme}://{link.netloc}"
        self.entered = visit(
            self.url, f"{link.path}?{link.query}", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate"
        )
        self.cookie = self.entered.headers["set-cookie"].partition(";")[0]
        self.token = ""
        self.page = self.get("/")
        found = re.search(rb'name="token" content="([0-9a-f]{64})"', self.page.body)
        assert found
        self.token = found[1].decode()

    def get(self, path: str, method: str = "GET", **headers: str) -> Visit:
        return visit(self.url, path, method, Cookie=self.cookie, **headers)

    def do(self, verb: str, /, **params: Any) -> Visit:
        """As the page's own buttons do."""
        return self.post(f"/api/{verb}", json.dumps(params), X_Token=self.token)

    def post(self, path: str, body: str, content_type: str = "application/json", **headers: str) -> Visit:
        given = {"Cookie": self.cookie, "Content_Type": content_type} | headers
        return send(self.url, path, "POST", body.encode(), **given)

    def ask(self, verb: str, query: str = "") -> Any:
        answer = self.get(f"/api/{verb}?{query}")
        assert answer.status == 200, answer
        return json.loads(answer.body)
