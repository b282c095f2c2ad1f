"""The operator's page: its files, its requests, and events as they happen.

The page's own files hold no data, and are open to everyone. All else requires a login (`logins.py`) in a header, and
requests without one get the same short refusal. The page reads and acts by the verbs of the control socket
(`page_verbs.py`), so it can do what the commands of the terminal do, and no more. It loads everything from here, and no
site may put it into a frame.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from gateway.adapters.page.places import OWNER, PLATFORM
from gateway.records.activity import CALLER, OWNER_LOGIN, PAGE_PLACE, Activity, Caller
from gateway.records.records import ActivityRecord, Login
from gateway.web.chat import read_json
from gateway.web.host_rules import ENTRANCE, HostRules
from gateway.web.http_request import JSON, HttpRequest, HttpResponse, HttpStream, answer_json
from gateway.web.key_check import KeyLimiter
from gateway.web.logins import Logins
from gateway.web.page_verbs import PageVerbs
from gateway.web.request_body import WebRefusal
from gateway.web.visitors import Visitors

FILES = Path(__file__).parent / "pages"
CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; "
    "manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PROTECTED: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
KNOWN_ALREADY = "the proxy says who you are: no link is needed here, nor good"
USED_LINK = "this link was used, or is older than a minute: `hermes-gateway open` prints a new one"
MOST_OF_LINK = 1000  # bytes of JSON
STATIC = "/static/"
COMMENT = re.compile(rb"^ *//.*\n", re.MULTILINE)
APART = ("enter.js", "open.js")  # the modules of pages beside the frame

AnswerVisitor: TypeAlias = Callable[[HttpRequest, Login], Awaitable[HttpResponse | HttpStream]]
"""The answer to an authorized visitor. Raises WebRefusal."""


class LinkCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a link, as the page sends it."""

    code: str


class Page(msgspec.Struct, eq=False, dict=True):
    """The answers to visitors of the page; `rooms` answer their own paths, by the first word.

    `program` is what people type to call this program.
    """

    _rules: HostRules
    _logins: Logins
    _visitors: Visitors
    _verbs: PageVerbs
    _activity: Activity
    _rooms: Mapping[str, AnswerVisitor]
    _program: str
    _limiter: KeyLimiter = msgspec.field(default_factory=KeyLimiter)

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse | HttpStream:
        """Answer a request that the host rules have passed; raises WebRefusal."""
        if request.method in ("GET", "HEAD") and (name := find_open_file(request.path)):
            return self._show_file(name)
        if (request.method, request.path) == ("POST", "/open"):
            return await self._enter(request, peer)
        visitor = await self._visitors.find(request, peer)
        login = visitor.login
        CALLER.set(self._name_caller(login, request, peer))
        if visitor.is_named and await self._logins.note_named(login.person, login.role):
            await self._activity.write(ActivityRecord(what="page.login"))
        if room := self._rooms.get(request.path.split("/", 2)[1]):
            return await room(request, login)
        if request.method not in ("GET", "HEAD"):
            return await self._change(request, login)
        match request.path.split("/"):
            case ["", "api", "me"]:
                may = self._verbs.list_allowed(login.role)
                about = {"person": login.person, "role": login.role, "is_named": visitor.is_named}
                return answer_verb(msgspec.json.encode({**about, "may": may, "program": self._program}))
            case ["", "api", verb]:
                return answer_verb(await self._verbs.look(verb, request))
        raise WebRefusal(HTTPStatus.NOT_FOUND, "not found")

    async def _enter(self, request: HttpRequest, peer: str) -> HttpResponse:
        """Exchange the code of a link for a login; the page gets its secret in this answer, and never again."""
        if self._visitors.read_name(request, peer):
            raise WebRefusal(HTTPStatus.FORBIDDEN, KNOWN_ALREADY)
        asked = await read_json(request, LinkCode, MOST_OF_LINK)
        secret = await self._logins.redeem(asked.code)
        if not secret:
            used = WebRefusal(HTTPStatus.FORBIDDEN, USED_LINK)
            raise self._limiter.refuse(self._rules.find_peer(request.headers, peer), "links", used)
        if login := await self._logins.find(secret):
            CALLER.set(self._name_caller(login, request, peer))
        await self._activity.write(ActivityRecord(what="page.login"))
        return answer_verb(msgspec.json.encode({"login": secret}))

    async def _change(self, request: HttpRequest, login: Login) -> HttpResponse:
        """Answer a request that changes something; raises WebRefusal."""
        match request.method, request.path.split("/"):
            case "POST", ["", "api", verb]:
                return answer_verb(await self._verbs.act(verb, request))
            case "POST", ["", "end"]:
                ended = await self._logins.end(login)
                await self._activity.write(ActivityRecord(what="page.logout"))
                return answer_json({"ended": ended})
        raise WebRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "this is only read", Allow="GET, HEAD")

    def _name_caller(self, login: Login, request: HttpRequest, peer: str) -> Caller:
        """Name the caller: a person by name, the owner by the beginning of the login's mark, to tell logins apart."""
        name = f"{OWNER_LOGIN}{login.mark[:8]}" if login.person == OWNER else f"{PLATFORM}:{login.person}"
        return Caller(name, f"{PAGE_PLACE}{self._rules.find_peer(request.headers, peer)}", login.role)

    def _show_file(self, name: str) -> HttpResponse:
        """Return one of the page's own files, by its whole name."""
        body, kind = self._files.get(unquote(name), (None, ""))
        if body is None:
            raise WebRefusal(HTTPStatus.NOT_FOUND, "the page has no file of that name")
        return HttpResponse(body=body, content_type=kind, headers=PROTECTED)

    @cached_property
    def _files(self) -> Mapping[str, tuple[bytes, str]]:
        """The files, read at the first visit; a request names a key of this mapping, and never a path.

        The frame names all modules, so that a browser loads them at once and not one behind the other.
        """
        paths = [path for path in sorted(FILES.iterdir()) if path.suffix in CONTENT_TYPES]
        found = {path.name: (read_file(path), CONTENT_TYPES[path.suffix]) for path in paths}
        modules = [name for name in found if name.endswith(".js") and name not in APART]
        links = [f'<link rel="modulepreload" href="/static/{name}">' for name in modules]
        frame, kind = found["index.html"]
        return {**found, "index.html": (frame.replace(b"{{modules}}", "\n".join(links).encode()), kind)}


def read_file(path: Path) -> bytes:
    """Return a file of the page, a script without its comments, which are for readers of the source."""
    return COMMENT.sub(b"", path.read_bytes()) if path.suffix == ".js" else path.read_bytes()


def find_open_file(path: str) -> str:
    """Return the name of the page's file at this path; "" for none."""
    if path.startswith(ENTRANCE):  # for people who come by a button in a chat
        return "enter.html"
    if path.startswith(STATIC):
        return path.removeprefix(STATIC)
    return {"/": "index.html", "/open": "open.html"}.get(path, "")


def answer_verb(said: bytes) -> HttpResponse:
    return HttpResponse(body=said, content_type=JSON, headers=PROTECTED)
