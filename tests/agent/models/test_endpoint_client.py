"""The way from a model to its endpoint: connections, proxies, certificates, redirects, and the headers sent."""

import gzip
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.agent.model import ModelRequest
from gateway.agent.models.anthropic import AnthropicModel
from gateway.agent.models.endpoint_client import has_certificates
from gateway.agent.models.http_model import HttpModel
from gateway.agent.models.openai import OpenAIModel
from gateway.errors import ModelError
from gateway.messages.transcript import Entry
from gateway.testing.live_gateway import until
from tests.agent.endpoint import Endpoint, serving
from tests.agent.models.proxies import proxying
from tests.installer.servers import make_certificate

KEY = "sk-of-mine-12345"
END = "[DONE]"


def said(text: str) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})


async def ask(model: HttpModel) -> str:
    return "".join([chunk.text async for chunk in model.stream(ModelRequest((Entry("user", "hi"),)))])


async def fail(model: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model)
    return caught.value


@asynccontextmanager
async def reaching(endpoint: Endpoint, environ: Mapping[str, str] = {}, url: str = "") -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("m", api_key=KEY, base_url=url or endpoint.url, environ=environ)
    yield model
    await model.aclose()


def list_headers(endpoint: Endpoint, number: int = -1) -> dict[str, str]:
    lines = endpoint.requests[number][0].split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_a_connection_that_the_server_closed_is_replaced_before_anything_is_sent(endpoint: Endpoint) -> None:
    endpoint.closes = True
    async with reaching(endpoint) as model:
        for _ in range(2):
            endpoint.stream(said("ok"), END)
            assert await ask(model) == "ok"
            await until(lambda: endpoint.closed == endpoint.connections)
    assert (len(endpoint.requests), endpoint.connections) == (2, 2)


async def test_what_was_sent_over_a_kept_connection_is_not_sent_again(endpoint: Endpoint) -> None:
    """The server may have taken it, and be at work on it."""
    async with reaching(endpoint) as model:
        endpoint.stream(said("ok"), END)
        assert await ask(model) == "ok"
        endpoint.closes = True
        endpoint.answers.append(b"")
        assert (await fail(model)).kind == "network"
    assert (len(endpoint.requests), endpoint.connections) == (2, 1)


async def test_more_people_than_usual_are_answered_at_once(endpoint: Endpoint) -> None:
    async with reaching(endpoint) as model, anyio.create_task_group() as group:
        for _ in range(40):
            endpoint.answers.append(b"stall")
            group.start_soon(ask, model)
        await until(lambda: endpoint.connections == 40)
        group.cancel_scope.cancel()


async def test_a_redirect_that_keeps_the_request_is_followed_on_its_host(endpoint: Endpoint) -> None:
    async with reaching(endpoint) as model:
        endpoint.answer(308, b"gone", location="/v2/chat/completions")
        endpoint.stream(said("there"), END)
        assert await ask(model) == "there"
    (_, first), (head, second) = endpoint.requests
    assert head.startswith("POST /v2/chat/completions ")
    assert (first, list_headers(endpoint)["authorization"]) == (second, f"Bearer {KEY}")
    assert endpoint.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307])
async def test_any_other_redirect_is_an_error_with_the_address_to_write(endpoint: Endpoint, status: int) -> None:
    """The key goes to no other host; and where a POST would become a GET, there is no model."""
    async with serving() as other, reaching(endpoint) as model:
        target = other.url.replace("127.0.0.1", "localhost") if status == 307 else endpoint.url + "/new"
        endpoint.answer(status, b"", location=f"{target}/chat/completions")
        error = await fail(model)
        assert (other.connections, len(endpoint.requests)) == (0, 1)
    assert str(error).endswith(f"(HTTP {status}: without a word); write base_url: {target}")
    assert error.kind == "missing"


async def test_redirects_without_end_are_given_up(endpoint: Endpoint) -> None:
    async with reaching(endpoint) as model:
        for _ in range(20):
            endpoint.answer(307, b"", location="/again")
        assert "without end" in str(await fail(model))
    assert len(endpoint.requests) == 6


async def test_an_answer_is_wanted_as_it_is_and_an_encoded_one_refused(endpoint: Endpoint) -> None:
    async with reaching(endpoint) as model:
        endpoint.answer(200, gzip.compress(said("small").encode()), content_encoding="gzip")
        error = await fail(model)
        assert (error.kind, str(error)) == ("response", "the model's endpoint answers in gzip, unasked")
        assert list_headers(endpoint)["accept-encoding"] == "identity"
        endpoint.answer(401, gzip.compress(b"{}"), content_encoding="gzip")
        assert (await fail(model)).kind == "auth"


async def test_a_refusal_without_end_is_read_a_little(endpoint: Endpoint) -> None:
    async with reaching(endpoint) as model:
        endpoint.answers.append(b"HTTP/1.1 500 X\r\ncontent-length: 900000000\r\n\r\n" + b"x" * 100_000)
        error = await fail(model)
    assert (error.kind, len(str(error))) == ("overload", 500)


@pytest.mark.parametrize(
    ("kind", "key", "wanted"),
    [
        (OpenAIModel, KEY, {"authorization": f"Bearer {KEY}"}),
        (AnthropicModel, KEY, {"x-api-key": KEY, "anthropic-version": "2023-06-01"}),
        (OpenAIModel, "", {}),
    ],
)
async def test_the_headers_are_these_and_no_others(
    endpoint: Endpoint, kind: type[HttpModel], key: str, wanted: Mapping[str, str]
) -> None:
    """Nothing tells of the machine, and nothing of the environment is sent along."""
    environ = {"OPENAI_CUSTOM_HEADERS": "X-A: b", "ANTHROPIC_CUSTOM_HEADERS": "X-A: b", "ANTHROPIC_AUTH_TOKEN": "t"}
    model = kind("m", api_key=key, base_url=endpoint.url, environ=environ)
    endpoint.answer(500, b"")
    await fail(model)
    await model.aclose()
    own = {"host", "user-agent", "accept", "accept-encoding", "content-type", "content-length"}
    found = list_headers(endpoint)
    assert {name: value for name, value in found.items() if name not in own} == wanted
    assert found["user-agent"].startswith("hermes-gateway/")


async def test_headers_of_the_model_count_more_however_they_are_written(endpoint: Endpoint) -> None:
    model = OpenAIModel("m", api_key=KEY, base_url=endpoint.url, headers={"AUTHORIZATION": "Other", "X-Title": "ä"})
    endpoint.answer(500, b"")
    await fail(model)
    await model.aclose()
    head = endpoint.requests[0][0]
    assert (head.lower().count("authorization:"), "authorization: Other" in head, "x-title: ä" in head) == (
        1,
        True,
        True,
    )


async def test_a_login_in_the_address_takes_the_place_of_the_key_and_is_told_to_nobody(endpoint: Endpoint) -> None:
    async with reaching(endpoint, url=endpoint.url.replace("http://", "http://me:pass%20word@")) as model:
        endpoint.answer(404, b"no pass%20word here")
        error = await fail(model)
    assert list_headers(endpoint)["authorization"] == "Basic bWU6cGFzcyB3b3Jk"
    assert "pass" not in str(error)


async def test_a_key_that_cannot_be_sent_is_not_told() -> None:
    model = OpenAIModel("m", api_key=f"{KEY}\n", base_url="http://127.0.0.1:1/v1")
    async with serving() as endpoint:
        model.base_url = endpoint.url
        error = await fail(model)
    await model.aclose()
    assert (error.kind, "12345" in str(error)) == ("request", False)


async def test_a_name_that_is_not_there_is_told_as_the_system_has_it() -> None:
    model = OpenAIModel("m", base_url="http://nobody.invalid/v1", environ={})
    error = await fail(model)
    await model.aclose()
    assert error.kind == "network"
    assert "attempts failed" not in str(error)


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_a_request_in_the_clear_goes_through_the_proxy_with_its_login(endpoint: Endpoint, name: str) -> None:
    async with proxying() as proxy, reaching(endpoint, {name: proxy.url}) as model:
        endpoint.stream(said("through"), END)
        assert await ask(model) == "through"
        assert proxy.asked == [f"POST {endpoint.url}/chat/completions"]


async def test_no_proxy_leads_around_it(endpoint: Endpoint) -> None:
    async with proxying() as proxy:
        async with reaching(endpoint, {"http_proxy": proxy.url, "no_proxy": "a.b, 127.0.0.1"}) as model:
            endpoint.stream(said("straight"), END)
            assert await ask(model) == "straight"
        assert proxy.asked == []


async def test_tls_goes_through_a_tunnel_and_the_proxy_sees_neither_key_nor_words(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "host.pem")
    async with serving(certificate) as endpoint, proxying() as proxy:
        async with reaching(endpoint, {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(certificate)}) as model:
            for _ in range(2):
                endpoint.stream(said("safe"), END)
                assert await ask(model) == "safe"
        assert proxy.asked == [f"CONNECT {endpoint.url[8:-3]}"]
        assert "proxy-authorization" not in list_headers(endpoint)


async def test_a_proxy_that_refuses_is_named_as_what_failed(tmp_path: Path) -> None:
    async with proxying() as proxy:
        model = OpenAIModel("m", base_url="https://127.0.0.1:1/v1", environ={"https_proxy": proxy.place})
        error = await fail(model)
        await model.aclose()
    assert (error.kind, "407 Proxy Authentication" in str(error)) == ("network", True)


async def test_a_socks_proxy_is_asked_for_the_name(endpoint: Endpoint) -> None:
    async with proxying("socks") as proxy, reaching(endpoint, {"all_proxy": f"socks5h://{proxy.place}"}) as model:
        endpoint.stream(said("around"), END)
        assert await ask(model) == "around"
        assert proxy.asked == [endpoint.url[7:-3]]


async def test_another_kind_of_proxy_is_an_error_and_not_gone_around(endpoint: Endpoint) -> None:
    async with reaching(endpoint, {"http_proxy": "socks4://127.0.0.1:1"}) as model:
        error = await fail(model)
    assert (error.kind, endpoint.connections) == ("missing", 0)
    assert "socks4://" in str(error)


async def test_a_host_of_an_unknown_authority_is_refused_before_the_key_is_sent(tmp_path: Path) -> None:
    async with serving(make_certificate(tmp_path / "host.pem")) as endpoint, reaching(endpoint) as model:
        error = await fail(model)
    assert (error.kind, endpoint.requests) == ("network", [])
    assert "self-signed certificate" in str(error)


def link_by_hash(certificate: Path) -> None:
    name = subprocess.check_output(["openssl", "x509", "-hash", "-noout", "-in", certificate], text=True).strip()
    certificate.with_name(f"{name}.0").symlink_to(certificate)


async def test_certificates_in_a_folder_are_trusted(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "host.pem")
    link_by_hash(certificate)
    async with serving(certificate) as endpoint, reaching(endpoint, {"SSL_CERT_DIR": str(tmp_path)}) as model:
        endpoint.stream(said("known"), END)
        assert await ask(model) == "known"


async def test_named_certificates_take_the_place_of_those_of_the_machine(tmp_path: Path) -> None:
    """And where they are not there, nothing is trusted in their place."""
    certificate = make_certificate(tmp_path / "host.pem")
    async with serving(certificate) as endpoint, reaching(endpoint, {"SSL_CERT_FILE": "/nowhere.pem"}) as model:
        error = await fail(model)
    assert (error.kind, endpoint.connections) == ("missing", 0)
    assert "SSL_CERT_FILE=/nowhere.pem" in str(error)


def test_a_folder_without_names_as_openssl_wants_them_holds_no_certificates(tmp_path: Path) -> None:
    """Some builds of Python look where a machine has one file with another name; then the list of certifi counts."""
    (tmp_path / "ca-bundle.crt").touch()
    paths = ssl.DefaultVerifyPaths("", str(tmp_path), "", "", "", "")
    assert not has_certificates(paths)
    (tmp_path / "0a1b2c3d.0").touch()
    assert has_certificates(paths)


def test_an_answer_needs_no_library_of_a_provider() -> None:
    source = """
import sys
import anyio
from gateway.agent.model import ModelRequest
from gateway.agent.models.openai import OpenAIModel
from gateway.errors import ModelError
from gateway.messages.transcript import Entry
from tests.agent.endpoint import serving

async def main():
    async with serving() as endpoint:
        endpoint.stream('{"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}', "[DONE]")
        model = OpenAIModel("m", base_url=endpoint.url)
        print("".join([chunk.text async for chunk in model.stream(ModelRequest((Entry("user", "hi"),)))]))
        await model.aclose()

anyio.run(main)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    answer, modules = done.stdout.splitlines()
    assert answer == "ok"
    loaded = set(modules.split())
    assert "httpcore" in loaded
    assert not loaded & {"openai", "anthropic", "mcp", "httpx", "httpx2", "pydantic", "aiohttp", "requests"}


WARMED = """
import sys
from pathlib import Path
import anyio
from gateway.agent.model import ModelRequest
from gateway.agent.models.factory import ModelSpec, lazy_model
from gateway.hooks import HookRegistry
from gateway.messages.transcript import Entry
from tests.agent.endpoint import serving
from tests.installer.servers import make_certificate

certificate = make_certificate(Path(sys.argv[1]))
created = []

async def main():
    async with serving(certificate) as endpoint, HookRegistry() as hooks:
        hooks.on("model:create", lambda event: created.append(1))
        endpoint.stream('{"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}', "[DONE]")
        environ = {"SSL_CERT_FILE": str(certificate)}
        specs = (
            ModelSpec("one", "openai", "m", kwargs={"base_url": endpoint.url, "environ": environ}),
            ModelSpec("two", "openai", "m", kwargs={"base_url": "http://nobody.invalid/v1"}),
            ModelSpec("three", "openai", "m", kwargs={"base_url": "https://a/v1", "environ": {"all_proxy": "socks4://a"}}),
            ModelSpec("four", "unheard-of", "m"),
        )
        model = lazy_model(specs, hooks.run, hooks.wants)
        await model.warm()
        print(endpoint.connections, created)
        from gateway.agent.models.endpoint_client import make_tls_context
        before, contexts = set(sys.modules), make_tls_context.cache_info().misses
        print("".join([chunk.text async for chunk in model.stream(ModelRequest((Entry("user", "hi"),)))]))
        print(*(set(sys.modules) - before), make_tls_context.cache_info().misses - contexts)

anyio.run(main)
"""


def test_a_warm_model_loads_nothing_for_its_first_answer_and_has_told_nobody_of_the_start(tmp_path: Path) -> None:
    """No connection is opened, no hook asked, and what is wrong is said when the model is asked."""
    command = [sys.executable, "-c", WARMED, str(tmp_path / "host.pem")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["0 []", "ok", "0"]
