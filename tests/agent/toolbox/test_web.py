"""The web tool reaches the public internet alone, whatever a URL, a name or a redirect says."""

from functools import partial
from typing import Any

import anyio
import pytest

from gateway.agent.toolbox.web import WebOptions, fetch_page
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.handler import extract_text
from gateway.parser.parser_process import ParserProcess
from gateway.worker.protocol import ForkServerSettings


@pytest.fixture
async def web_options(tmp_path):
    """Return the options that the daemon takes from the settings."""
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        parser = ParserProcess(fork_server, tmp_path / "parser.log")

        yield partial(WebOptions, output_limit=64_000, parser=parser)


@pytest.fixture
async def server():
    """A server on loopback that answers by path, and notes who asked."""
    answers: dict[str, Any] = {}
    asked: list[Any] = []

    async def serve(stream):
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            path = head.split(b" ")[1].decode()
            asked.append(head.decode())
            if path == "/slow":
                await anyio.sleep_forever()
            await stream.send(answers[path])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port), answers, asked
        group.cancel_scope.cancel()
    await listener.aclose()


def page(body, kind="text/html; charset=utf-8", status="200 OK", **headers):
    body = body if isinstance(body, bytes) else body.encode()
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def names(**known):
    async def resolve(host, port):
        return known.get(host.replace(".", "_"), [host])

    return resolve


async def test_a_page_comes_as_text(server, web_options):
    port, answers, asked = server
    answers["/"] = page("<title>T</title><body><h1>Hi</h1><script>evil()</script><p>A &amp; B<ul><li>one<li>two</ul>")
    text = await fetch_page(web_options(frozenset({"127.0.0.1"})), f"http://127.0.0.1:{port}/")
    assert text == "T\n\n# Hi\n\nA & B\n\n- one\n- two"
    assert "cookie" not in asked[0].lower()


@pytest.mark.row("T31")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://127.1:{port}/",
        "http://0:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://public.example@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\@public.example/",
        "http://public.example\\@127.0.0.1:{port}/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "http://",
        "127.0.0.1:{port}",
    ],
)
async def test_no_spelling_leads_to_this_machine(server, web_options, url):
    port, answers, asked = server
    answers["/"] = page("secret")
    with pytest.raises(AgentError):
        await fetch_page(web_options(frozenset(), timeout=3), url.format(port=port))
    assert asked == []


@pytest.mark.row("T31")
async def test_a_name_with_one_inner_address_is_refused(server, web_options):
    port, _, asked = server
    web = web_options(frozenset(), resolve=names(mixed_example=["1.1.1.1", "127.0.0.1"]))
    with pytest.raises(AgentError, match="is on this machine"):
        await fetch_page(web, f"http://mixed.example:{port}/")
    assert asked == []


@pytest.mark.row("T31")
async def test_the_connection_goes_to_the_address_that_was_looked_at(server, web_options):
    """A name that means something else a moment later (rebinding) is asked once only."""
    port, answers, _ = server
    answers["/"] = page("inner", "text/plain")
    lookups = []

    async def rebind(host, port):
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["169.254.169.254"]

    web = web_options(frozenset({"rebind.example"}), resolve=rebind)
    assert await fetch_page(web, f"http://rebind.example:{port}/") == "inner"
    assert lookups == ["rebind.example"]


@pytest.mark.row("T31")
@pytest.mark.parametrize(
    "location", ["http://localhost:{port}/secret", "//127.0.0.1:{port}/secret", "file:///etc/passwd"]
)
async def test_a_redirect_is_judged_like_the_first_page(server, web_options, location):
    port, answers, asked = server
    answers["/"] = page("", status="302 Found", location=location.format(port=port))
    answers["/secret"] = page("secret")
    web = web_options(
        frozenset({f"front.example:{port}"}), resolve=names(front_example=["127.0.0.1"], localhost=["127.0.0.1"])
    )
    with pytest.raises(AgentError):
        await fetch_page(web, f"http://front.example:{port}/")
    assert len(asked) == 1


async def test_redirects_are_followed_and_have_an_end(server, web_options):
    port, answers, _ = server
    web = web_options(frozenset({"127.0.0.1"}))
    answers["/a"] = page("", status="301 Moved", location="/b")
    answers["/b"] = page("here", "text/plain")
    answers["/loop"] = page("", status="302 Found", location="/loop")
    assert await fetch_page(web, f"http://127.0.0.1:{port}/a") == "here"
    with pytest.raises(AgentError, match="more than 5 times"):
        await fetch_page(web, f"http://127.0.0.1:{port}/loop")


async def test_what_is_too_long_too_slow_no_text_or_refused_says_so(server, web_options):
    port, answers, _ = server
    here = frozenset({"127.0.0.1"})
    web = web_options(here, largest=5000, output_limit=100)
    answers["/long"] = page("x" * 100_000, "text/plain")
    answers["/image"] = page(b"\x89PNG", "image/png")
    answers["/gone"] = page("gone for good", "text/plain", "410 Gone")
    assert (await fetch_page(web, f"http://127.0.0.1:{port}/long")).endswith("x\n[cut after 100 characters]")
    hurried = web_options(here, timeout=0.5)
    for options, path, words in (
        (web, "image", "which is not text"),
        (web, "gone", "410: gone for good"),
        (hurried, "slow", "longer than 0.5"),
    ):
        with pytest.raises(AgentError, match=words):
            await fetch_page(options, f"http://127.0.0.1:{port}/{path}")


def test_a_page_that_is_badly_written_still_has_its_text():
    assert extract_text(b"<p>one<p>two</b></p><style>x{}</style>three", "text/html", "") == "one\ntwo\nthree"
    assert extract_text('{"ä": 1}'.encode("latin-1"), "application/json", "latin-1") == '{"ä": 1}'
    assert extract_text(b"x", "text/plain", "no-such-charset") == "x"
