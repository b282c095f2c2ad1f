"""A person who is logged in to the page of a running gateway, by the bytes that a browser sends."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gateway.testing import GatewayProcess
from tests.web.visits import Visit, send, visit


def open_link(gateway: GatewayProcess) -> str:
    return str(json.loads(gateway.cli("open", "--json").stdout)["url"])


def log_in(gateway: GatewayProcess) -> "Browser":
    return Browser(open_link(gateway))


def redeem(link: str, host: str = "", **headers: str) -> Visit:
    """As the page does that a link opens."""
    at = urlsplit(link)
    body = json.dumps({"code": parse_qs(at.query)["code"][0]}).encode()
    given = {"Content_Type": "application/json"} | headers
    return send(f"{at.scheme}://{at.netloc}", at.path, "POST", body, host, **given)


def read_login(entered: Visit) -> str:
    """The secret of a new login."""
    assert entered.status == 200, entered
    return str(json.loads(entered.body)["login"])


class Browser:
    """Somebody who was let in: `token` is the secret of their login, which their page sends with everything."""

    def __init__(self, url: str) -> None:
        link = urlsplit(url)
        self.url = f"{link.scheme}://{link.netloc}"
        self.entered = redeem(url, Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")
        self.token = read_login(self.entered)
        self.page = visit(self.url, "/")

    def get(self, path: str, method: str = "GET", **headers: str) -> Visit:
        return visit(self.url, path, method, **{"X_Token": self.token, **headers})

    def do(self, verb: str, /, **params: Any) -> Visit:
        """As the page's own buttons do."""
        return self.post(f"/api/{verb}", json.dumps(params), X_Token=self.token)

    def post(self, path: str, body: str, content_type: str = "application/json", **headers: str) -> Visit:
        return send(self.url, path, "POST", body.encode(), **{"Content_Type": content_type, **headers})

    def ask(self, verb: str, query: str = "") -> Any:
        answer = self.get(f"/api/{verb}?{query}")
        assert answer.status == 200, answer
        return json.loads(answer.body)
