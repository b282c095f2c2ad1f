"""The settings of the web search: the service that the agent may ask, and how often a person may cause that.

The agent gets the tool `web_search` once a service is named: a SearXNG by its address, Brave by a key, or a hook of the
operator's own. A service that lacks its address or key is an error of the configuration, which `config check` reports
with its place.

Guests have the tool with SearXNG only, since each search by Brave costs money; `access.tools.guest` decides otherwise.
A hook answers at `tool:before`; `docs/web-search.md` has one.
"""

from typing import Annotated, Literal

from msgspec import Struct

from gateway.config.fields import HTTP_PATTERN, Secret, describe


class SearchSettings(Struct, frozen=True, kw_only=True):
    """The service that searches the web for the tool `web_search`. Without one, no agent has this tool."""

    provider: Annotated[
        Literal["off", "searxng", "brave", "hook"],
        describe("the service; `hook`: the tool is offered, and a hook at `tool:before` gives its result"),
    ] = "off"
    url: Annotated[
        str,
        describe(
            "the address of SearXNG, for instance `http://127.0.0.1:8888`; Brave has its own", pattern=HTTP_PATTERN
        ),
    ] = ""
    key: Annotated[Secret, describe("the key for Brave, or what a SearXNG behind a proxy takes as a bearer's")] = (
        Secret()
    )
    a_day: Annotated[int, describe("how many searches one person may cause in a day", ge=1)] = 200

    def __post_init__(self) -> None:
        if self.provider == "searxng" and not self.url:
            raise ValueError("SearXNG needs its address", "write it to `tools.search.url`")
        if self.provider == "brave" and not self.key:
            raise ValueError("Brave needs a key", "write `key: ${BRAVE_API_KEY}`, and the key itself into `.env`")
