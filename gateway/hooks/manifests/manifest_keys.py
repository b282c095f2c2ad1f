"""The keys of `HOOK.yaml`: their types, their bounds and their meanings, for the check of the file and for editors."""

from typing import Annotated, Any, Literal

import msgspec

from gateway.config.fields import describe
from gateway.config.webhooks import WebhookKeys
from gateway.events import OnError
from gateway.yaml_source.binder import ONE_OR_MORE
from gateway.yaml_source.units import Duration

ObserveMode = Literal["queued", "parallel"]
DeliveryMode = Literal["memory", "durable"]
WrittenFor = Literal["hermes", "gateway"]
HookRight = Literal["emit", "send", "store", "submit"]
PluginRight = HookRight | Literal["tool", "llm", "session"]  # plugins have these too

OBSERVE_TIMEOUT, DECIDE_TIMEOUT, REMOTE_TIMEOUT = 120.0, 10.0, 30.0

# Keys of hooks written for Hermes. Hermes reads those of HERMES_KEYS and passes over the rest, and so do we.
HERMES_KEYS = frozenset({"name", "description", "events", "version", "enabled"})
IGNORED_KEYS = frozenset({"author", "authors", "license", "homepage", "repository", "tags", "category", "metadata"})
FOREIGN_KEYS = frozenset({"platforms", "capabilities", "requires_env", "priority"})

CALLED_BY = ("events", "intercepts", "schedule", "webhook")
"""The keys by which a hook is called; a manifest needs one of them."""
MEANT_BESIDE = (("protocol", "command"), ("dialect", "url"), ("secret_env", "url"))
"""The keys that mean nothing without another one."""

EVENT_PATTERN = r"^[^\s:]+(?::[^\s:]+)*$"
WHOLE_PATH_PATTERN = r"^(/|~/|~$)"

ShortText = Annotated[str, msgspec.Meta(max_length=1000)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Net = bool | tuple[Port, ...]
TimeoutSeconds = Annotated[Duration, msgspec.Meta(gt=0, le=86_400)]
Words = Annotated[tuple[str, ...], ONE_OR_MORE]


class ManifestRequires(msgspec.Struct, frozen=True, kw_only=True):
    """The programs, variables, packages and networks that a hook needs."""

    bins: Annotated[Words, describe("programs on the PATH")] = ()
    env: Annotated[Words, describe("variables that must be set; the hook gets them, secrets too")] = ()
    python: Annotated[Words, describe('packages, as `"httpx>=0.27,<1"`')] = ()
    platforms: Annotated[Words, describe("networks, one of which must be configured")] = ()


class ReachKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The paths and ports that a hook may reach. A hook with one of these keys reaches nothing else."""

    reads: Annotated[Words, describe("what it reads outside of its own folder: whole paths, from / or ~/ on")] = ()
    writes: Annotated[Words, describe("what it reads and writes: whole paths, from / or ~/ on")] = ()
    net: Annotated[Net | None, describe("the network: none, all of it, or these TCP ports")] = None


REACH_KEYS = ReachKeys.__struct_fields__


class ManifestKeys(ReachKeys, frozen=True, kw_only=True):
    """The keys of a manifest; a list with one entry may be written as that entry."""

    name: Annotated[str, msgspec.Meta(max_length=200), describe("for people; what counts is the folder's name")] = ""
    description: Annotated[ShortText, describe("what it does, in one sentence, for people")] = ""
    version: Annotated[str, msgspec.Meta(max_length=100), describe("for people, and for those who install it")] = ""
    events: Annotated[Words, describe("what it observes: it gets a copy, and nothing waits for it")] = ()
    intercepts: Annotated[Words, describe("what it decides on: it is awaited, and may change, stop, repeat, ask")] = ()
    when: Annotated[dict[str, Any], describe("only events whose fields have these values; a list: any of them")] = {}
    order: Annotated[float, describe("among hooks that decide: low numbers first")] = 0
    mode: Annotated[ObserveMode, describe("one event after another, or up to `max` at once")] = "queued"
    max: Annotated[int, msgspec.Meta(ge=1, le=64), describe("in the mode `parallel`: how many at once")] = 4
    timeout: Annotated[TimeoutSeconds | None, describe("how long one call may last")] = None
    on_error: Annotated[
        OnError,
        describe(
            "when it fails while deciding: skip it, deny what it guards, or raise the error; before a tool, "
            "and where it can deny a message or a turn, the default is deny"
        ),
    ] = "skip"
    delivery: Annotated[DeliveryMode, describe("of what it observes: `durable` outlives a stop and a crash")] = "memory"
    isolation: Annotated[Literal["process", "none"], describe("`none` is for hooks that come with the gateway")] = (
        "process"
    )
    keep: Annotated[
        bool | None,
        describe(
            "`false`: its process ends while it is not called, whatever it holds in memory; `true`: never; by default "
            "it ends if its modules hold what they held after their import"
        ),
    ] = None
    requires: Annotated[ManifestRequires, describe("what must be there; what is missing is named")] = ManifestRequires()
    env: Annotated[Words, describe("variables of the environment and of `.env` that it gets, secrets too")] = ()
    uses: Annotated[tuple[HookRight, ...], ONE_OR_MORE, describe("what it has the gateway do")] = ()
    schedule: Annotated[
        str,
        msgspec.Meta(max_length=200),
        describe("when it is called by the clock: minute, hour, day, month, weekday; or @daily; or every 15m"),
    ] = ""
    webhook: Annotated[WebhookKeys | None, describe("how it is called from outside, and who signs that")] = None
    options: Annotated[dict[str, Any], describe("its settings, with their defaults: `context.options`")] = {}
    command: Annotated[Words, describe("a program instead of `handler.py`")] = ()
    protocol: Annotated[
        Literal["lines", "oneshot"], describe("`lines`: JSON-RPC, and it lasts; `oneshot`: started for each event")
    ] = "lines"
    url: Annotated[
        str, msgspec.Meta(max_length=2000), describe("a server, or a client of NATS, instead of `handler.py`")
    ] = ""
    dialect: Annotated[Literal["gateway", "sherma"], describe("what the server speaks")] = "gateway"
    secret_env: Annotated[
        str, describe("the variable with the secret that signs what is sent, or with the NATS user's password")
    ] = ""
    enabled: Annotated[bool, describe("`false` switches it off")] = True
    written_for: Annotated[WrittenFor | None, describe("whose events it knows; by default it is seen in it")] = None


OWN_KEYS = frozenset(ManifestKeys.__struct_fields__) - HERMES_KEYS - FOREIGN_KEYS - {"written_for"}
# Our keys for a hook's decisions and lifetime; people write
# them into folders for Hermes too, which passes over them.
SHARED_KEYS = frozenset({"timeout", "order", "on_error", "keep"})
