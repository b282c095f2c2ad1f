"""The settings of models, agents and their tools."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Struct

from gateway.config.fields import HTTP_PATTERN, describe
from gateway.config.secret import Secret
from gateway.yaml_source import Duration, Size

Provider: TypeAlias = Literal["demo", "openai", "openrouter", "ollama", "lmstudio", "anthropic"]


class ModelSettings(Struct, frozen=True, kw_only=True):
    """A language model and how it is reached."""

    provider: Annotated[
        Provider,
        describe(
            "who offers it; `openai` is any endpoint that speaks its language, `demo` is built in and needs nothing"
        ),
    ] = "demo"
    name: Annotated[str, describe("the model's name at its provider, for instance `gpt-5-mini`")] = ""
    base_url: Annotated[
        str, describe("the address of the endpoint; by default the provider's own", pattern=HTTP_PATTERN)
    ] = ""
    api_key: Annotated[Secret, describe("the key; by default what the provider's usual variable holds")] = Secret()
    script: Annotated[str, describe("for `demo`: a file of turns that are played back instead of thought up")] = ""
    timeout: Annotated[Duration, describe("how long the next piece of an answer is waited for", ge=1, le=3600)] = 120.0
    retries: Annotated[int, describe("how often a call is tried again before its first piece came", ge=0, le=10)] = 2
    fallbacks: Annotated[
        tuple[str, ...], describe("names under `models` that are tried in turn when this one fails")
    ] = ()
    context_window: Annotated[
        int, describe("tokens that fit into one call; histories are compacted before", ge=1000)
    ] = 128_000
    input_price: Annotated[float, describe("what a million tokens cost going in, for the sums in `/usage`", ge=0)] = 0.0
    output_price: Annotated[float, describe("what a million tokens cost coming out", ge=0)] = 0.0
    options: Annotated[
        dict[str, Any], describe("further parameters of each call, for instance `{temperature: 0.2}`")
    ] = {}


class AgentSettings(Struct, frozen=True, kw_only=True):
    """An agent: what it is told, what it may use, how far it may go."""

    description: Annotated[str, describe("what it is for; other agents read it before they call it")] = ""
    instructions: Annotated[str, describe("what stands before every conversation")] = ""
    context_files: Annotated[
        tuple[str, ...],
        describe("files whose text stands behind the instructions; relative ones begin at the first of `tools.roots`"),
    ] = ("AGENTS.md",)
    model: Annotated[str, describe("a name under `models`; by default the one of `model`")] = ""
    tools: Annotated[
        tuple[str, ...] | None, describe("the tools it has, by name; `mcp_NAME` are all of that server; by default all")
    ] = None
    skills: Annotated[tuple[str, ...] | None, describe("the skills it may load, by name; by default all")] = None
    hooks: Annotated[tuple[str, ...], describe("hooks that see this agent's turns alone, by name")] = ()
    agents: Annotated[tuple[str, ...], describe("the agents that it may call, and hand over to")] = ()
    transfers: Annotated[bool, describe("whether it may hand the conversation over, or only call")] = True
    max_hops: Annotated[int, describe("calls of the model in one turn; 0: no limit", ge=0)] = 50
    max_tokens: Annotated[int, describe("tokens in one turn; 0: no limit", ge=0)] = 0
    max_time: Annotated[Duration, describe("how long one turn may take; 0: no limit")] = 900.0


class RouteSettings(Struct, frozen=True, kw_only=True):
    """Which agent answers whom; the first route that fits counts, else the agent `main` answers."""

    agent: Annotated[str, describe("a name under `agents`")]
    platform: Annotated[str, describe("only on this platform")] = ""
    chat: Annotated[str, describe("only in the chat with this id")] = ""
    user: Annotated[str, describe("only for the person with this id")] = ""


class ToolSettings(Struct, frozen=True, kw_only=True):
    """What the built-in tools may do."""

    roots: Annotated[
        tuple[str, ...], describe("directories in which files may be read and written; relative ones begin at the home")
    ] = ("hermes-gateway/workspace",)
    shell: Annotated[Literal["ask", "allow", "off"], describe("whether a person is asked before a command runs")] = (
        "ask"
    )
    shell_allow: Annotated[tuple[str, ...], describe("programs that run without asking, for instance `[git, ls]`")] = ()
    shell_timeout: Annotated[Duration, describe("when a command that still runs is ended", ge=1, le=3600)] = 120.0
    output_limit: Annotated[Size, describe("how much of a tool's output the model gets to see", ge=1000)] = 64_000
    fetch_hosts: Annotated[
        tuple[str, ...],
        describe("hosts on this machine or network that the web tool may reach; all others there are refused"),
    ] = ()


class McpServerSettings(Struct, frozen=True, kw_only=True):
    """A server of tools that speaks MCP: a program that is started, or an address."""

    command: Annotated[str, describe("the program")] = ""
    args: Annotated[tuple[str, ...], describe("its arguments")] = ()
    env: Annotated[dict[str, Secret], describe("its environment; `${NAME}` takes a value from ours")] = {}
    url: Annotated[str, describe("the address, where no program is to be started", pattern=HTTP_PATTERN)] = ""
    headers: Annotated[
        dict[str, Secret], describe("headers of each request; `${NAME}` takes a value from our environment")
    ] = {}
    tools: Annotated[tuple[str, ...] | None, describe("the tools that are offered, by name; by default all")] = None
    timeout: Annotated[Duration, describe("how long one call may take", ge=1, le=3600)] = 60.0
    enabled: Annotated[bool, describe("whether it is used")] = True

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server has either a `command` or a `url`", "write exactly one of the two")
