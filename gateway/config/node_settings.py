"""The settings of this gateway among those that share a journal, and of the journal."""

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from gateway.config.fields import RELOADABLE, describe
from gateway.yaml_source.units import Duration, Size

NodeRole: TypeAlias = Literal["ingress", "lanes", "hooks", "web"]

NODE_ROLES: tuple[NodeRole, ...] = get_args(NodeRole)


class NodeSettings(Struct, frozen=True, kw_only=True):
    """This gateway among those that share a journal."""

    name: Annotated[
        str,
        describe("its name, another one for each; by default the host's, and four letters made once for the home"),
        Meta(pattern=r"^[A-Za-z0-9._-]{0,64}$"),
    ] = ""
    roles: Annotated[
        tuple[NodeRole, ...],
        describe(
            "what it does of the work: `ingress` serves the chat networks, `lanes` runs the turns, `hooks` tells "
            "durable hooks and calls those with a `schedule:`, `web` opens the port; other gateways do the rest",
            min_length=1,
        ),
    ] = NODE_ROLES


class JournalSettings(Struct, frozen=True, kw_only=True):
    """How long conversations and deliveries are kept, and how much space they may take."""

    retention: Annotated[
        Duration, describe("forget conversations after this time without use, at least a week; 0: never"), RELOADABLE
    ] = 7_776_000.0
    max_size: Annotated[
        Size,
        describe(
            "near this size the conversations that were not used for longest are forgotten, none before a week; at it "
            "no message is taken any more; 0: no limit"
        ),
    ] = 2_000_000_000


class BackupSettings(Struct, frozen=True, kw_only=True):
    """Copies of the home that the gateway makes by itself, into `hermes-gateway/backups`; see docs/backups.md."""

    every: Annotated[Duration, describe("how often, for instance `1d`; 0: never", ge=0)] = 0.0
    keep: Annotated[int, describe("how many of them are kept; those that you make are no matter", ge=1, le=1000)] = 7


class JobSettings(Struct, frozen=True, kw_only=True):
    """The limits of jobs and reminders; see docs/jobs.md."""

    each_person: Annotated[int, describe("the most jobs of one person", ge=1, le=10_000)] = 50
    runs_an_hour: Annotated[int, describe("the most runs of all jobs of one person in an hour", ge=1, le=10_000)] = 60
