"""Downloads from the web: over a protected line, and limited in size."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from gateway.errors import HookError
from gateway.installer.download import download
from gateway.installer.source import fetch, parse_source
from tests.installer.archives import GREET, make_tar

LIMIT = 1000


class Handler(BaseHTTPRequestHandler):
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        where = {"/away": "http://example.org/x.zip", "/round": "/round", "/near": "/small"}.get(self.path)
        if where:
            self.send_response(302)
            self.send_header("Location", where)
            self.end_headers()
            return
        data = self.files.get(self.path)
        if self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            with suppress(ConnectionError):  # until nobody listens any more
                while True:
                    self.wfile.write(b"x")
                    time.sleep(0.02)
            return
        self.send_response(200 if data else 404)
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Handler.files = {"/small": b"x" * LIMIT, "/large": b"x" * (LIMIT + 1)}
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/small", "/near"])
def test_what_lies_there_is_fetched(server: str, path: str) -> None:
    assert download(f"{server}{path}", LIMIT) == b"x" * LIMIT


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/large", "larger than 1,000 bytes"),
        ("/nowhere", "404"),
        ("/away", "fetched over https"),
        ("/round", "cannot be fetched"),
    ],
)
def test_what_is_not_right_is_said(server: str, path: str, said: str) -> None:
    with pytest.raises(HookError, match=said):
        download(f"{server}{path}", LIMIT)


def test_what_comes_too_slowly_is_not_waited_for(server: str) -> None:
    with pytest.raises(HookError, match=r"did not come within 0\.2 s"):
        download(f"{server}/slow", LIMIT * LIMIT, patience=0.2)


@pytest.mark.parametrize("address", ["http://example.org/x", "ftp://example.org/x", "file:///etc/passwd", "x", "//x"])
def test_no_other_line_is_taken(address: str) -> None:
    with pytest.raises(HookError, match="fetched over https"):
        download(address, LIMIT)


def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(HookError, match="cannot be fetched"):
        download("http://127.0.0.1:1/x.zip", LIMIT)


def test_an_archive_on_the_web_is_a_source(server: str, tmp_path: Path) -> None:
    Handler.files["/greet-1.0.tar.gz"] = make_tar(tmp_path / "greet-1.0.tar.gz", GREET).read_bytes()
    source = parse_source(f"{server}/greet-1.0.tar.gz")
    (tmp_path / "work").mkdir()
    found = fetch(source, tmp_path / "work", {})
    assert (found.name, (found.folder / "HOOK.yaml").read_text()) == ("greet", GREET["HOOK.yaml"])
