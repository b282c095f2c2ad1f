"""Search the web, by a SearXNG or by Brave, whose address the configuration names; or leave that to a hook.

That address may be on this network, and nothing else there is reached: a redirect is an error. Strangers wrote the
results, so the model gets them bounded, as JSON below a line that says so.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Annotated, Any, NoReturn, TypeAlias

import anyio
import msgspec
from msgspec import Meta

from gateway.agent.libraries import load_library
from gateway.agent.toolbox.memory import owner_of
from gateway.agent.toolbox.web import REDIRECT_CODES, read_body
from gateway.agent.tools import Tool, ToolContext, tool_from
from gateway.errors import AgentError
from gateway.threads import run_in_thread
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.tool_names import FOUND

WEB_SEARCH = "web_search"
BY_HOOK = (
    "no hook answered: tools.search.provider is `hook`, so a hook at tool:before has to give `web_search` a `result`"
)
LONGEST_QUERY = 400  # characters, as Brave takes them
LARGEST = 2_000_000  # bytes of an answer
TIMEOUT = 20.0
LONGEST = {"title": 200, "url": 1000, "description": 600}

# Takes one search from the day of a person; False: the day has no more.
TakeSearch: TypeAlias = Callable[[str], Awaitable[bool]]

_decode = JsonDecoder[Any]().decode


class SearchService(msgspec.Struct, frozen=True):
    """A service: where it listens, what it takes, where its results are, and what it calls their excerpt."""

    name: str
    url: str
    path: str
    parameters: Mapping[str, str]
    results: tuple[str, ...]
    excerpt: str
    key_header: str
    key_prefix: str = ""
    count: str = ""  # the parameter for the number of results, at most `most`
    most: int = 20


SERVICES: Mapping[str, SearchService] = {
    "searxng": SearchService(
        "SearXNG", "", "/search", {"format": "json"}, ("results",), "content", "Authorization", "Bearer "
    ),
    "brave": SearchService(
        "Brave",
        "https://api.search.brave.com",
        "/res/v1/web/search",
        {"text_decorations": "false"},
        ("web", "results"),
        "description",
        "X-Subscription-Token",
        count="count",
    ),
}


class SearchOptions(msgspec.Struct, frozen=True):
    """The settings of the search: `provider` is one of `SERVICES`, or `hook`."""

    provider: str
    output_limit: int
    take: TakeSearch
    url: str = ""
    key: str = ""
    timeout: float = TIMEOUT


def make_search_tool(options: SearchOptions) -> Tool:
    """Make the tool `web_search`."""

    async def web_search(
        query: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY)],
        context: ToolContext,
        limit: Annotated[int, Meta(ge=1, le=100)] = 5,
    ) -> str:
        """Search the web. Returns titles, addresses and excerpts; `web_fetch` reads a page."""
        if options.provider not in SERVICES:
            raise AgentError(BY_HOOK)
        if not await options.take(owner_of(context)):
            raise AgentError(
                "this person has no more searches today; `tools.search.a_day` in config.yaml says how many"
            )
        return quote_results(await fetch_results(options, query, limit), options.output_limit)

    return tool_from(web_search, repeatable=True, read_only=True)


async def fetch_results(options: SearchOptions, query: str, limit: int) -> list[dict[str, Any]]:
    """Return what the service finds. Raises AgentError if it cannot be reached, or fails."""
    service = SERVICES[options.provider]
    aiohttp, yarl = await run_in_thread(load_library, "web")
    try:
        with anyio.fail_after(options.timeout):
            status, body = await _get(aiohttp, yarl, service, options, query, limit)
    except TimeoutError:
        raise AgentError(f"{service.name} took longer than {options.timeout:g} seconds") from None
    except (ValueError, aiohttp.ClientError, OSError) as error:
        _fail(service, f"could not be reached: {error}", "look at `tools.search.url` in config.yaml")
    _check_status(service, status, body)
    try:
        answer = _decode(body)
    except ValueError as error:
        _fail(service, f"sent no JSON ({error})", "look at `tools.search.url` in config.yaml")
    found = [*_read_results(service, answer)][:limit]
    if not found and (engines := _list_failed_engines(answer)):
        raise AgentError(f"{service.name} found nothing, since these of its engines failed: {', '.join(engines)}")
    return found


def quote_results(found: list[dict[str, Any]], limit: int) -> str:
    """Quote as many results as fit into so many characters, in the form that Hermes gives them."""
    while True:
        numbered = [{**one, "position": place} for place, one in enumerate(found, 1)]
        text = f"{FOUND}\n{json.dumps({'success': True, 'data': {'web': numbered}}, ensure_ascii=False)}"
        if len(text) <= limit or not found:
            return text
        found = found[:-1]


async def _get(
    aiohttp: Any, yarl: Any, service: SearchService, options: SearchOptions, query: str, limit: int
) -> tuple[int, bytes]:
    """Ask the service; return the status of its answer, and the body."""
    parameters = {"q": query, **service.parameters}
    if service.count:
        parameters[service.count] = str(min(limit, service.most))
    url = yarl.URL(f"{(options.url or service.url).rstrip('/')}{service.path}").with_query(parameters)
    headers = {"User-Agent": "hermes-gateway", "Accept": "application/json"}
    if options.key:
        headers[service.key_header] = f"{service.key_prefix}{options.key}"
    # trust_env stays off: a proxy from the environment would see the key and each query.
    async with (
        aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        if response.status in REDIRECT_CODES and (location := response.headers.get("location")):
            where = url.join(yarl.URL(location)).origin()
            _fail(service, f"leads to {where}, which is not followed", "write the right address to `tools.search.url`")
        return response.status, await read_body(response, LARGEST)


def _check_status(service: SearchService, status: int, body: bytes) -> None:
    if status < 400:
        return
    if service is SERVICES["searxng"] and status == 403:
        _fail(service, "answers no JSON (403)", "add `json` to `search.formats` of its settings.yml")
    if status in (401, 403):
        _fail(service, f"does not take the key ({status})", "look at `tools.search.key` in config.yaml")
    if status == 429:
        _fail(service, "has had too many requests (429)", "wait, or go on without it")
    _fail(service, f"answered {status}", " ".join(body[:200].decode("utf-8", "replace").split()))


def _fail(service: SearchService, what: str, remedy: str) -> NoReturn:
    raise AgentError(f"{service.name} {what}: {remedy}") from None


def _read_results(service: SearchService, answer: Any) -> Iterator[dict[str, Any]]:
    """Yield the results with an address of the web, with texts in one line of a bounded length."""
    for name in service.results:
        answer = answer.get(name) if isinstance(answer, dict) else None
    for one in answer if isinstance(answer, list) else ():
        if isinstance(one, dict) and str(one.get("url")).startswith(("http://", "https://")):
            fields = {"title": one.get("title"), "url": one["url"], "description": one.get(service.excerpt)}
            yield {name: _shorten(value, LONGEST[name]) for name, value in fields.items()}


def _list_failed_engines(answer: Any) -> list[str]:
    """List SearXNG's engines that failed, which it says in an answer without an error: each with the reason."""
    rows = answer.get("unresponsive_engines") if isinstance(answer, dict) else None
    named = [one for one in rows if isinstance(one, list) and one] if isinstance(rows, list) else []
    return [_shorten(f"{one[0]} ({', '.join(map(str, one[1:]))})", 100) for one in named[:20]]


def _shorten(value: Any, limit: int) -> str:
    text = " ".join(str(value or "").split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
