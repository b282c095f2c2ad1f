"""The shape of the configuration: every setting, its type, its bounds, its default and its purpose.

This is the one description: the file is checked against it, and `config schema` and the reference in the documentation
are made from it. `gateway.config.schema` adds the settings of each chat network.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from gateway.config.desk_settings import DeskSettings
from gateway.config.fields import HTTP_PATTERN, NATS_PATTERN, RELOADABLE, VARIABLE_PATTERN, Secret, describe
from gateway.config.node_settings import BackupSettings, JobSettings, JournalSettings, NodeSettings
from gateway.config.platform_settings import DisplaySettings, ProgressDisplay
from gateway.config.providers import DEMO, PROVIDERS
from gateway.config.search_settings import SearchSettings
from gateway.config.voice_settings import LANGUAGE_PATTERN, VoiceSettings
from gateway.config.webhooks import WebhookSettings
from gateway.messages.roles import Role
from gateway.yaml_source.binder import ONE_OR_MORE
from gateway.yaml_source.units import Duration, Size

ShellRules: TypeAlias = tuple[str | dict[str, tuple[str, ...]], ...]
Price: TypeAlias = Annotated[float, Meta(ge=0)]
AnswerRule: TypeAlias = Literal["mention", "quiet", "always", "never"]
if TYPE_CHECKING:
    Provider: TypeAlias = str
else:
    Provider: TypeAlias = Literal[tuple(PROVIDERS)]


class ModelSettings(Struct, frozen=True, kw_only=True):
    """A language model and how it is reached."""

    provider: Annotated[Provider, describe("`openai`: any endpoint of that form; `demo`: built in, needs nothing")] = (
        DEMO
    )
    name: Annotated[str, describe("the model's name at its provider, for instance `gpt-5-mini`")] = ""
    base_url: Annotated[str, describe("the endpoint's address; by default its provider's", pattern=HTTP_PATTERN)] = ""
    api_key: Annotated[Secret, describe("the key; by default what the provider's usual variable holds")] = Secret()
    script: Annotated[str, describe("for `demo`: a file of turns that are played back instead of thought up")] = ""
    timeout: Annotated[
        Duration, describe("how long the gateway waits for the next piece of an answer", ge=1, le=3600)
    ] = 120.0
    retries: Annotated[int, describe("how often the gateway retries a call that has not answered yet", ge=0, le=10)] = 2
    fallbacks: Annotated[tuple[str, ...], describe("names under `models` to try in turn when this one fails")] = ()
    context_window: Annotated[int, describe("tokens in one call; longer histories are compacted", ge=1000)] = 128_000
    input_price: Annotated[float, describe("the price of a million input tokens; 0: the known one, if any", ge=0)] = 0.0
    output_price: Annotated[float, describe("the price of a million output tokens; 0: as above", ge=0)] = 0.0
    cached_price: Annotated[Price | None, describe("the price of input tokens from the cache; else of input")] = None
    cache_write_price: Annotated[
        Price | None, describe("the price of input tokens put into the cache; else of input")
    ] = None
    pictures: Annotated[bool, describe("whether it sees pictures; otherwise it gets only their paths")] = True
    options: Annotated[dict[str, Any], describe("further parameters of each call, as `{temperature: 0.2}`")] = {}


class AgentSettings(Struct, frozen=True, kw_only=True):
    """An agent: its instructions, its tools and its limits."""

    description: Annotated[str, describe("what it is for; other agents read it before they call it")] = ""
    instructions: Annotated[str, describe("the instructions before every conversation")] = ""
    context_files: Annotated[
        tuple[str, ...], describe("files to add to the instructions, relative to the first of `tools.roots`")
    ] = ("AGENTS.md",)
    model: Annotated[str, describe("a name under `models`; by default the one of `model`")] = ""
    tools: Annotated[
        tuple[str, ...] | None, describe("its tools by name; `mcp_NAME`: all of that server; by default all")
    ] = None
    skills: Annotated[tuple[str, ...] | None, describe("the skills it may load, by name; by default all")] = None
    hooks: Annotated[tuple[str, ...], describe("hooks that see this agent's turns alone, by name")] = ()
    agents: Annotated[tuple[str, ...], describe("the agents that it may call, and hand over to")] = ()
    transfers: Annotated[bool, describe("whether it may hand the conversation over, or only call")] = True
    picture_turns: Annotated[int, describe("the number of further turns in which the model sees a picture", ge=0)] = 3
    vision: Annotated[str, describe("a name under `models`: it describes pictures for the agent's own model")] = ""
    max_hops: Annotated[int, describe("calls of the model in one turn; 0: no limit", ge=0)] = 50
    max_tokens: Annotated[int, describe("tokens in one turn; 0: no limit", ge=0)] = 0
    max_time: Annotated[Duration, describe("how long one turn may take; 0: no limit")] = 900.0


class RouteSettings(Struct, frozen=True, kw_only=True):
    """The agent that answers these people and chats; the first matching route counts, else the agent `main` answers."""

    agent: Annotated[str, describe("a name under `agents`")]
    platform: Annotated[str, describe("only on this platform")] = ""
    account: Annotated[str, describe("only by the bot of this name, one of `platforms.NAME.accounts`")] = ""
    chat: Annotated[str, describe("only in the chat with this id")] = ""
    user: Annotated[str, describe("only for the person with this id")] = ""


class ChatSettings(Struct, frozen=True, kw_only=True):
    """The settings of one chat or thread. They take precedence over `/settings` there."""

    answer: Annotated[
        AnswerRule | None,
        describe(
            "in groups: `mention`, `quiet` (it also reads the other messages), `always`, or `never` (only commands)"
        ),
    ] = None
    agent: Annotated[str, describe("the agent that answers there, a name under `agents`")] = ""
    model: Annotated[str, describe("a name under `models`")] = ""
    language: Annotated[
        str, describe("its language, as `en` or `de-AT`"), Meta(pattern=rf"^({LANGUAGE_PATTERN})?$")
    ] = ""
    progress: Annotated[ProgressDisplay | None, describe("over `display.progress`, there")] = None
    reactions: Annotated[bool | None, describe("over `display.reactions`, there")] = None
    typing: Annotated[bool | None, describe("over `display.typing`, there")] = None


class SandboxSettings(Struct, frozen=True, kw_only=True):
    """The files, network and sockets that commands of the shell tool may reach."""

    mode: Annotated[
        Literal["auto", "off"],
        describe(
            "`auto`: where the kernel can hold it (Linux with Landlock), commands read all but the gateway's home and "
            "the usual homes of keys, and write the files of the person who asks and a temporary folder"
        ),
    ] = "auto"
    hide: Annotated[tuple[str, ...], describe("further places that cannot be read, for instance `~/letters`")] = ()
    read: Annotated[tuple[str, ...], describe("places that can be read though they are among the hidden ones")] = ()
    write: Annotated[tuple[str, ...], describe("further places that can be written, for instance `~/.cache`")] = ()
    network: Annotated[bool, describe("whether commands reach the network")] = True
    sockets: Annotated[
        bool, describe("whether they reach sockets with a path, as those of Docker: a way out of the rest")
    ] = False
    command: Annotated[tuple[str, ...], describe("your own program before each command instead, as `bwrap`")] = ()


class ToolSettings(Struct, frozen=True, kw_only=True):
    """The limits of the built-in tools."""

    roots: Annotated[
        tuple[str, ...], describe("folders whose files owners and admins may read and write, relative to the home")
    ] = ("hermes-gateway/workspace",)
    shell: Annotated[
        Literal["ask", "sandboxed", "allow", "off"],
        describe("`sandboxed`: commands of owners and admins run unasked, in the sandbox, without network"),
    ] = "ask"
    sandbox: SandboxSettings = SandboxSettings()
    approvers: Annotated[
        tuple[Literal["owner", "admin", "asker"], ...],
        describe("who may approve a tool call, owners always; `asker`: the person who asks, of any role"),
    ] = ("owner", "admin")
    unattended: Annotated[
        Duration, describe("how long BOOT.md or a schedule waits for an approval; then it goes on", ge=1)
    ] = 600.0
    shell_allow: Annotated[
        ShellRules,
        describe(
            "what runs without asking: `ls` is the harmless use of a program that is known here, `git: [status, log]` "
            "some of its subcommands, `make: [test, lint]` words that you allow for any other program"
        ),
    ] = ()
    shell_timeout: Annotated[Duration, describe("when a command that still runs is ended", ge=1, le=3600)] = 120.0
    output_limit: Annotated[Size, describe("how much of a tool's output the model gets to see", ge=1000)] = 64_000
    fetch_hosts: Annotated[
        tuple[str, ...], describe("local hosts that the web tool may reach; it reaches no others here")
    ] = ()
    search: SearchSettings = SearchSettings()


class McpServerSettings(Struct, frozen=True, kw_only=True):
    """A server of tools that speaks MCP: a program that is started, or an address."""

    command: Annotated[str, describe("the program")] = ""
    args: Annotated[tuple[str, ...], describe("its arguments")] = ()
    env: Annotated[
        dict[str, Secret], describe("its environment; `${NAME}` is a variable of the gateway's environment")
    ] = {}
    url: Annotated[str, describe("the address of the server, instead of a program to start", pattern=HTTP_PATTERN)] = ""
    headers: Annotated[
        dict[str, Secret], describe("headers of each request; `${NAME}` is a variable of the gateway's environment")
    ] = {}
    tools: Annotated[tuple[str, ...] | None, describe("the tools that are offered, by name; by default all")] = None
    trust: Annotated[
        Literal["none", "read", "all"] | None,
        describe(
            "which of its tools run without a question: `none`, what it says only reads (`read`), or `all`; by default "
            "none, and for a server that is older than this setting `read`, for owners and admins"
        ),
    ] = None
    allow: Annotated[tuple[str, ...], describe("further tools that run unasked, by their names there")] = ()
    timeout: Annotated[Duration, describe("how long one call may take", ge=1, le=3600)] = 60.0
    enabled: Annotated[bool, describe("whether it is used")] = True

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server has either a `command` or a `url`", "write exactly one of the two")


MAIN = "main"
DEFAULT_RATE = 30


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """The daemon itself."""

    shutdown_timeout: Annotated[
        Duration, describe("how long work may go on after SIGTERM, and a second gateway waits", ge=1, le=600)
    ] = 30.0
    timezone: Annotated[
        str, describe("the zone whose days usage is summed by, as `Europe/Berlin`; else the local one"), RELOADABLE
    ] = ""
    ping: Annotated[
        Annotated[str, Meta(pattern=r"^(https?://\S+)?$")],
        describe("a URL to call each minute, for a service that alerts you when the calls stop"),
    ] = ""


# The prefix of a plugin's name where a hook has the same name. Without such a hook the plain name is enough.
PLUGIN_PREFIX = "plugin:"


class HookOverrides(Struct, frozen=True, kw_only=True):
    """The settings of one hook, which override its manifest."""

    enabled: Annotated[bool | None, describe("whether it runs; by default what its manifest says")] = None
    options: Annotated[dict[str, Any], describe("over the `options` of its manifest")] = {}
    env: Annotated[
        tuple[Annotated[str, Meta(pattern=VARIABLE_PATTERN)], ...],
        describe("further variables that it gets, by name; write their values into `.env`"),
    ] = ()
    isolation: Annotated[
        Literal["process", "none"] | None, describe("`none`: inside the gateway, where it can disturb everything")
    ] = None
    on_error: Annotated[
        Literal["skip", "deny"] | None,
        describe("`deny`: a failure denies what it intercepts; by default as its manifest says"),
    ] = None
    schedule: Annotated[str | None, describe("when the clock calls it, over its manifest; empty: never")] = None
    agents: Annotated[
        tuple[str, ...], describe("the only agents that it hears; `agents.NAME.hooks` says the same")
    ] = ()
    written_for: Annotated[
        Literal["hermes", "gateway"] | None,
        describe("the program that it was written for; by default its code shows that"),
    ] = None
    keep: Annotated[
        bool | None, describe("`false`: its process ends after `hooks.idle`; `true`: never; over its manifest")
    ] = None


class HooksSettings(Struct, frozen=True, kw_only=True):
    """Hooks. A key that is none of these and holds a mapping is the name of a hook, or `plugin:NAME`: its settings."""

    dirs: Annotated[tuple[str, ...], describe("further folders of hooks, relative to the home"), RELOADABLE] = ()
    enabled: Annotated[tuple[str, ...], describe("built-in hooks that are switched on, by name"), RELOADABLE] = ()
    disabled: Annotated[tuple[str, ...], describe("hooks that are switched off, by name"), RELOADABLE] = ()
    env: Annotated[
        Literal["lenient", "strict"],
        describe("`strict`: a hook of Hermes gets only variables that it declares"),
        RELOADABLE,
    ] = "lenient"
    trust: Annotated[
        Literal["placed", "pinned"],
        describe("`pinned`: a new or changed hook waits for `hooks trust NAME`"),
        RELOADABLE,
    ] = "placed"
    memory: Annotated[Size, describe("what the process of one hook may use", ge=32_000_000)] = 512_000_000
    processes: Annotated[
        int, describe("how many processes and threads hooks may add, beside one process each", ge=8)
    ] = 256
    eager: Annotated[int, describe("how many hooks are started at once; further ones at their first event", ge=0)] = 50
    idle: Annotated[Duration, describe("when an idle process of a hook ends, if nothing is lost; 0: never", ge=0)] = (
        600.0
    )
    each: Annotated[
        dict[str, HookOverrides], describe("settings of hooks whose names are among the words above"), RELOADABLE
    ] = {}

    def find_overrides(self, name: str, short: str = "") -> HookOverrides:
        """Return the settings of one hook; `short` is another name for it."""
        return self.each.get(name) or self.each.get(short) or HookOverrides()


class AdapterSettings(Struct, frozen=True, kw_only=True):
    """Chat networks whose code comes from others. It runs inside the gateway: install it only from people you trust."""

    dirs: Annotated[tuple[str, ...], describe("directories of adapters; relative ones begin at the home")] = ()


class AllPlatformSettings(Struct, frozen=True, kw_only=True):
    """The chat networks."""


class PlatformIds(Struct, frozen=True, kw_only=True):
    """Stable ids, for each network; `all` counts on every one. Names are refused: they can be taken over."""


USER_TOOLS = (
    *("read_file", "write_file", "edit_file", "list_files", "web_fetch", "web_search", "remember", "recall"),
    *("schedule", "scheduled", "unschedule", "load_skill", "unload_skill", "send_message", "trusted"),
)
GUEST_TOOLS = ("web_fetch", "load_skill", "unload_skill")


class RoleToolSettings(Struct, frozen=True, kw_only=True):
    """The tools that an agent has when it works for a person of each role. An owner has all."""

    admin: Annotated[
        tuple[str, ...], describe("tools of an admin: names, globs as `mcp_wiki_*`, or `all`"), ONE_OR_MORE
    ] = ("all",)
    user: Annotated[
        tuple[str, ...],
        describe("tools of a user; `trusted`: those that need no approval, as of trusted servers"),
        ONE_OR_MORE,
    ] = USER_TOOLS
    guest: Annotated[tuple[str, ...], describe("tools of people who may write because everyone may"), ONE_OR_MORE] = (
        GUEST_TOOLS
    )


class GroupSettings(Struct, frozen=True, kw_only=True):
    """Several people with the same role."""

    people: Annotated[tuple[str, ...], describe("its members as `PLATFORM:ID`; a person is in one group at most")] = ()
    role: Annotated[Literal["admin", "operator", "user", "guest"], describe("the lowest role of its members")] = "user"
    rate: Annotated[
        Annotated[int, Meta(ge=1)] | None, describe("messages a minute for each person; by default `access.rate`")
    ] = None


class AccessSettings(Struct, frozen=True, kw_only=True):
    """The people who may use the gateway. By default the list is empty."""

    owners: Annotated[PlatformIds, describe("who may do everything, on every platform where the id is theirs")] = (
        PlatformIds()
    )
    admins: Annotated[PlatformIds, describe("who may use every command, and approve")] = PlatformIds()
    users: Annotated[PlatformIds, describe("the users who may write to the bot")] = PlatformIds()
    group_users: Annotated[PlatformIds, describe("the users who may write to the bot in groups alone")] = PlatformIds()
    chats: Annotated[PlatformIds, describe("groups in which everyone may write to the bot")] = PlatformIds()
    everybody: Annotated[tuple[str, ...], describe("networks on which everyone may write to the bot; dangerous")] = ()
    strangers: Annotated[Literal["pair", "ignore"], describe("`pair`: they get a code, which you can approve")] = "pair"
    user_commands: Annotated[tuple[str, ...] | None, describe("commands of users; by default the harmless ones")] = None
    tools: RoleToolSettings = RoleToolSettings()
    groups: Annotated[
        dict[str, GroupSettings], describe("people who are authorized together, by the group's name")
    ] = {}
    rate: Annotated[
        Annotated[int, Meta(ge=1)] | dict[Role, Annotated[int, Meta(ge=1)]],
        describe(f"messages a minute that one person may send; or by role, {DEFAULT_RATE} where none is said"),
    ] = DEFAULT_RATE


class UsageLimit(Struct, frozen=True, kw_only=True):
    """The limits of usage in a day or a month; a missing one has no limit."""

    tokens: Annotated[Annotated[int, Meta(ge=0)] | None, describe("input and output tokens; by default no limit")] = (
        None
    )
    money: Annotated[Price | None, describe("their cost, if their price is known; by default no limit")] = None


class BudgetLimit(Struct, frozen=True, kw_only=True):
    """The limits of one budget; days are those of `gateway.timezone`."""

    day: UsageLimit = UsageLimit()
    month: UsageLimit = UsageLimit()


class BudgetSettings(Struct, frozen=True, kw_only=True):
    """The budgets of models. Owners are warned, all others stopped."""

    all: Annotated[BudgetLimit, describe("by everybody together")] = BudgetLimit()
    each_person: Annotated[BudgetLimit, describe("by each person who has no budget of their own")] = BudgetLimit()
    people: Annotated[
        dict[str, BudgetLimit], describe("of one person: PLATFORM:ID, as `hermes-gateway usage` shows it")
    ] = {}
    groups: Annotated[dict[str, BudgetLimit], describe("of a group of `access.groups` together, by its name")] = {}
    keys: Annotated[
        dict[str, BudgetLimit], describe("of a program's key, for every `user` that it names, by the key's name")
    ] = {}


class SessionSettings(Struct, frozen=True, kw_only=True):
    """Conversations: when a new one begins, who shares one, what happens while one is busy."""

    reset: Annotated[
        Literal["none", "idle", "daily", "both"], describe("when a new conversation begins automatically")
    ] = "none"
    idle: Annotated[Duration, describe("for `idle`: after this silence", ge=60)] = 86_400.0
    daily_at: Annotated[int, describe("for `daily`: at this hour of the day", ge=0, le=23)] = 4
    busy: Annotated[
        Literal["queue", "interrupt"],
        describe("what a message, or an edit of the current one, does to a running answer"),
        RELOADABLE,
    ] = "queue"
    deletions: Annotated[
        Literal["forget", "keep"], describe("messages that their authors delete: forget their words, or keep them")
    ] = "forget"
    too_old: Annotated[
        Duration, describe("a message that waited longer, as in a downtime, gets only a note; 0: none is too old")
    ] = 86_400.0
    per_user_in_groups: Annotated[bool, describe("in a group each person has a conversation of their own")] = True
    per_user_in_threads: Annotated[bool, describe("in a thread too")] = False
    state_db: Annotated[
        Literal["auto", "on", "off"], describe("write Hermes's `state.db`; `auto`: once a hook reads it")
    ] = "auto"
    turns: Annotated[int, describe("answers that one gateway makes at the same time", ge=1, le=1000)] = 16
    turns_per_person: Annotated[int, describe("of those, for one person", ge=1, le=1000)] = 4


class WebTlsSettings(Struct, frozen=True, kw_only=True):
    """The certificate of the port, where it speaks TLS itself."""

    cert: Annotated[str, describe("the file of the certificate, with those between it and its root")] = ""
    key: Annotated[str, describe("the file of its key")] = ""


class WebSettings(Struct, frozen=True, kw_only=True):
    """The port: whether the gateway is well, figures for Prometheus, and the operator's page."""

    enabled: Annotated[bool, describe("whether there is a port")] = True
    listen: Annotated[
        str,
        describe("an IP address and a port; without `tls` or `trusted_proxies` a loopback address; port 0: a free one"),
    ] = "127.0.0.1:8730"
    url: Annotated[
        str, describe("the address that people use, for instance of a reverse proxy", pattern=HTTP_PATTERN)
    ] = ""
    hosts: Annotated[tuple[str, ...], describe("further names by which it is reached; all others are refused")] = ()
    tls: WebTlsSettings = WebTlsSettings()
    trusted_proxies: Annotated[
        tuple[str, ...], describe("addresses or networks of reverse proxies whose word on a request's origin counts")
    ] = ()
    identity: Annotated[
        str,
        describe(
            "the header in which these proxies alone name the person, as `X-Forwarded-User`",
            pattern=r"^([A-Za-z0-9-]{1,60})?$",
        ),
    ] = ""
    people: Annotated[
        dict[str, Role],
        describe("the people of that header who may use the page, as `web:NAME`, with their roles"),
        RELOADABLE,
    ] = {}


class LogSettings(Struct, frozen=True, kw_only=True):
    """The logs of the gateway."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], describe("the lowest level that is logged"), RELOADABLE
    ] = "info"
    format: Annotated[Literal["auto", "text", "json"], describe("how lines on the standard error look")] = "auto"
    size: Annotated[Size, describe("when a log file is full", ge=10_000)] = 10_000_000
    keep: Annotated[int, describe("how many full ones are kept", ge=0, le=100)] = 5


class TraceSettings(Struct, frozen=True, kw_only=True):
    """The collector that receives traces of turns, with the duration of each step."""

    endpoint: Annotated[
        str,
        describe(
            "the address at which a collector of OpenTelemetry's takes traces over HTTP, such as "
            "`http://127.0.0.1:4318/v1/traces`; needs the extra `otel`",
            pattern=HTTP_PATTERN,
        ),
    ] = ""


class SecuritySettings(Struct, frozen=True, kw_only=True):
    """The findings of `hermes-gateway security audit` that you accept."""

    accepted: Annotated[
        tuple[str, ...], describe("ids of checks whose findings you accept; they are only counted")
    ] = ()


class Settings(Struct, frozen=True, kw_only=True):
    """All settings."""

    gateway: GatewaySettings = GatewaySettings()
    model: Annotated[ModelSettings, describe("the model that answers"), RELOADABLE] = ModelSettings()
    models: Annotated[dict[str, ModelSettings], describe("further models, by a name of your choice"), RELOADABLE] = {}
    agents: Annotated[
        dict[str, AgentSettings], describe("agents by name; `main` answers unless a route says otherwise"), RELOADABLE
    ] = {}
    routes: Annotated[
        tuple[RouteSettings, ...], describe("rules that choose the agent for a chat or a person"), RELOADABLE
    ] = ()
    chats: Annotated[
        dict[str, ChatSettings], describe("rules of a chat or thread, by `NETWORK:CHAT` or `NETWORK:CHAT:THREAD`")
    ] = {}
    tools: Annotated[ToolSettings, RELOADABLE] = ToolSettings()
    mcp_servers: Annotated[
        dict[str, McpServerSettings], describe("servers of further tools, by a name of your choice"), RELOADABLE
    ] = {}
    hooks: HooksSettings = HooksSettings()
    platforms: AllPlatformSettings = AllPlatformSettings()
    adapters: AdapterSettings = AdapterSettings()
    display: Annotated[DisplaySettings, RELOADABLE] = DisplaySettings()
    access: Annotated[AccessSettings, RELOADABLE] = AccessSettings()
    budgets: Annotated[BudgetSettings, RELOADABLE] = BudgetSettings()
    sessions: SessionSettings = SessionSettings()
    voice: Annotated[VoiceSettings, RELOADABLE] = VoiceSettings()
    desk: Annotated[DeskSettings, RELOADABLE] = DeskSettings()
    traces: TraceSettings = TraceSettings()
    engine: Annotated[
        str,
        describe(
            "the NATS servers that keep the journal instead of a file in the home, as `nats://one:4222,two:4222`; "
            "all gateways that name them work on it; see docs/cluster.md",
            pattern=NATS_PATTERN,
        ),
    ] = ""
    node: NodeSettings = NodeSettings()
    journal: JournalSettings = JournalSettings()
    backup: Annotated[BackupSettings, RELOADABLE] = BackupSettings()
    jobs: Annotated[JobSettings, RELOADABLE] = JobSettings()
    web: WebSettings = WebSettings()
    webhooks: Annotated[
        dict[str, WebhookSettings], describe("webhooks that others call, by the name in their address"), RELOADABLE
    ] = {}
    logs: LogSettings = LogSettings()
    security: SecuritySettings = SecuritySettings()

    @property
    def main(self) -> AgentSettings:
        return self.agents.get(MAIN, AgentSettings())
