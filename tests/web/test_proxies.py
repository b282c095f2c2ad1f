"""The configurations of nginx and Caddy on the pages, behind the real programs: page, login, and a growing answer."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from gateway.testing.patience import wait_until
from tests.docs_blocks import ROOT
from tests.http_server import find_free_ports
from tests.installer.servers import make_certificate
from tests.web.chats import ChatVisitor, is_answer
from tests.web.logged_in import open_link, read_login, redeem
from tests.web.visits import visit

pytestmark = pytest.mark.process

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
ONCE = {"Connection": "close"}  # a proxy keeps a connection open that the gateway would close
NAME, GATEWAY, HTTPS = "gateway.example.org", "127.0.0.1:8730", "443 ssl"


def read_block(page: str, beginning: str) -> str:
    """Return the block of a page that begins so."""
    blocks = re.findall(r"^```text\n(.*?)^```$", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if block.startswith(beginning))
    return str(block)


def configure_nginx(folder: Path, inside: str, port: int, _other: int) -> list[str]:
    server = read_block("web-access.md", "server {")
    certificate = make_certificate(folder / "both.pem")
    lines = f"ssl_certificate {certificate}; ssl_certificate_key {certificate};"
    for shown, real in (
        (HTTPS, f"127.0.0.1:{port} ssl"),
        (NAME, "localhost"),
        ("# ssl_certificate, ssl_certificate_key", lines),
        (GATEWAY, inside),
    ):
        assert shown in server
        server = server.replace(shown, real)
    places = "".join(
        f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder / 'pid'}; error_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}{server}}}\n"
    )
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def configure_caddy(folder: Path, inside: str, port: int, other: int) -> list[str]:
    site = read_block("recipes/proxy.md", NAME)
    assert NAME in site
    assert GATEWAY in site
    options = (
        f"admin off\nlocal_certs\nskip_install_trust\nstorage file_system {folder}\ndefault_bind 127.0.0.1\n"
        f"https_port {port}\nhttp_port {other}\n"
    )
    shown = site.replace(NAME, "localhost").replace(GATEWAY, inside)
    (folder / "Caddyfile").write_text(f"{{\n{options}}}\n{shown}")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextmanager
def running(command: list[str], folder: Path, url: str) -> Iterator[None]:
    program = shutil.which(command[0], path=PATH)
    if program is None:
        pytest.skip(f"the recipe is tried with the real program: apt install {command[0]}")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *command[1:]], stdout=log, stderr=log, env={"HOME": str(folder)})
    try:
        wait_until(lambda: process.poll() is not None or answers(url), what=f"{command[0]} at {url}")
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    with suppress(OSError):
        return visit(url, **ONCE).status == 200
    return False


@pytest.mark.parametrize("configure", [configure_nginx, configure_caddy])
def test_a_chat_goes_on_behind_a_proxy(configure: Callable[[Path, str, int, int], list[str]], tmp_path: Path) -> None:
    port, other, own = find_free_ports(3)
    url = f"https://localhost:{port}"
    with GatewayProcess(tmp_path / "home") as gateway:
        web = f"web: {{url: '{url}', trusted_proxies: [127.0.0.1]}}\n"
        gateway.environ["GATEWAY_WEB_LISTEN"] = inside = f"127.0.0.1:{own}"
        gateway.script({"user": "", "text": "I heard you."}, settings=web)
        gateway.start()
        with running(configure(tmp_path, inside, port, other), tmp_path, url):
            assert b"<html" in visit(url, "/", **ONCE).body
            ann = ChatVisitor(url, read_login(redeem(open_link(gateway), **ONCE)), **ONCE)
            with ann.watching() as events:  # the stream stays open: what arrives was not held back
                ann.write("hello")
                assert "I heard you." in next(one for one in events if is_answer(one)).data["text"]
            assert visit(url, "/api/status", **ONCE).status == 403
