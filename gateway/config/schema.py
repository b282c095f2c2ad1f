"""The whole shape of a configuration: the settings of the gateway, and of the existing chat networks.

The caller passes the networks; they bring their sections, the lists of their ids, and the environment variables of all
settings: those of Hermes's users, and ours, `GATEWAY_...`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import inspect

from gateway.config.environment import Environment
from gateway.config.fields import describe
from gateway.config.home import Home
from gateway.config.platform_settings import PlatformPlace, PlatformSettings, PlatformSpec, UnknownSettings
from gateway.config.settings import AccessSettings, AllPlatformSettings, PlatformIds, Settings
from gateway.logs.redaction import TokenShape
from gateway.yaml_source.binder import describe_shape
from gateway.yaml_source.node_paths import KeyPath, Shape
from gateway.yaml_source.tree import Finding, YamlNode

S = TypeVar("S", bound=msgspec.Struct)

FindSchema: TypeAlias = Callable[[Home, YamlNode, Environment], "SettingsSchema | None"]
"""The settings with the networks that a home brings, by its file and what is set outside; None: it brings none."""

PREFIX = "GATEWAY_"
FORMER_SETTINGS: Mapping[KeyPath, str] = {
    ("journal", "repeats"): "NATS servers keep what is answered for 2 days, and a home for 14",
    ("journal", "shards"): "the journal is one stream",
}
"""Settings of earlier versions that do nothing any more, each with what holds instead."""
ACCOUNTS = (
    "further bots of this network, by a name of your choice; each has the settings above for itself alone, and their "
    "variables with its name behind them, as in `_WORK`"
)


class SettingVariable(NamedTuple):
    """A variable, the setting that it means, and how its text is read; a list is separated by commas."""

    variable: str
    path: KeyPath
    shape: Shape


class SettingsSchema:
    """The settings that exist with these networks, and their variables.

    places: the code of each network. findings: the faults of networks in a home; `find_more` finds these.
    """

    def __init__(
        self,
        platforms: Mapping[str, PlatformSpec],
        places: Mapping[str, PlatformPlace] | None = None,
        find_more: FindSchema | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        self.platforms = platforms
        self.places = places or {}
        self.findings = tuple(findings)
        self.settings = build_settings_type(platforms)
        self._find_more = find_more

    def expand(self, home: Home, tree: YamlNode, outside: Environment) -> "SettingsSchema":
        """Add the networks of this home."""
        return (self._find_more(home, tree, outside) if self._find_more else None) or self

    @property
    def unknown(self) -> list[str]:
        """The networks whose settings are unknown because their code is not loaded."""
        return [name for name, spec in self.platforms.items() if issubclass(spec.settings, UnknownSettings)]

    @cached_property
    def own_variables(self) -> tuple[SettingVariable, ...]:
        """Our variables, one for each setting that fits into one text; they take precedence over Hermes's."""
        return tuple(_list_variables(describe_shape(self.settings), ()))

    @cached_property
    def hermes_variables(self) -> tuple[SettingVariable, ...]:
        """The variables that Hermes reads too.

        A value that is wrong for us may be right for Hermes, so it does not stop us.
        """
        named = {"GATEWAY_ALLOWED_USERS": "access.users.all", "HERMES_MODEL": "model.name"}
        for platform, spec in self.platforms.items():
            named |= {
                **spec.variables,
                f"{platform.upper()}_ALLOWED_USERS": f"access.users.{platform}",
                f"{platform.upper()}_HOME_CHANNEL": f"platforms.{platform}.home_channel",
                f"{platform.upper()}_HOME_CHANNEL_NAME": f"platforms.{platform}.home_channel_name",
                f"{platform.upper()}_REQUIRE_MENTION": f"platforms.{platform}.require_mention",
            }
        shapes = {".".join(name.path): name for name in self.own_variables}
        return tuple(shapes[dotted]._replace(variable=variable) for variable, dotted in named.items())

    @cached_property
    def _variables(self) -> Mapping[KeyPath, str]:
        """The variable of each setting, by its path; Hermes's name if it has one."""
        return {name.path: name.variable for name in (*self.own_variables, *self.hermes_variables)}

    @cached_property
    def allow_all_variables(self) -> Mapping[str, tuple[str, ...]]:
        """Variables that, when true, open networks to everybody."""
        each = {f"{platform.upper()}_ALLOW_ALL_USERS": (platform,) for platform in self.platforms}
        return {"GATEWAY_ALLOW_ALL_USERS": tuple(self.platforms), **each}

    @cached_property
    def unsupported_variables(self) -> Mapping[str, str]:
        """Variables of Hermes's and of earlier versions that make no difference here, each with the reason."""
        former = {_variable_of(path): describe_former(path) for path in FORMER_SETTINGS}
        return former | {
            name: why for spec in self.platforms.values() for name, why in spec.unsupported_variables.items()
        }

    @property
    def token_shapes(self) -> list[TokenShape]:
        """The shapes of the networks' secrets."""
        return [shape for spec in self.platforms.values() for shape in spec.token_shapes]

    @property
    def noisy_loggers(self) -> list[str]:
        """The loggers of the networks' libraries that say too much."""
        return [name for spec in self.platforms.values() for name in spec.noisy_loggers]

    @cached_property
    def account_lists(self) -> Mapping[str, str]:
        """The variable that names further bots of a network, by network; `setup --account` writes it."""
        return {platform: _variable_of(("platforms", platform, "accounts")) for platform in self.platforms}

    def list_account_variables(self, platform: str, account: str) -> Iterator[SettingVariable]:
        """Yield the variables of one account: those of the network, Hermes's too, with the account's name appended."""
        usual = {name.path: name for name in (*self.own_variables, *self.hermes_variables)}
        for path, name in usual.items():
            if path[:2] == ("platforms", platform):
                variable = f"{name.variable}{ending_of(account)}"
                yield SettingVariable(variable, (*path[:2], "accounts", account, *path[2:]), name.shape)

    def list_platform_secrets(self, platform: str, account: str = "") -> Iterator[tuple[KeyPath, str]]:
        """Yield the path of each secret of a network, with the variable that should hold it."""
        variables = self._variables
        if account:
            variables = {name.path: name.variable for name in self.list_account_variables(platform, account)}
        above = ("platforms", platform, *(("accounts", account) if account else ()))
        for secret in self.platforms[platform].secrets:
            yield (*above, secret), variables[*above, secret]


def build_settings_type(platforms: Mapping[str, PlatformSpec]) -> type[Settings]:
    """Build `Settings` with a section and a list of ids for each network."""
    annotated: Any = Annotated  # the type checker insists on seeing the types inside
    literal: Any = Literal
    networks = {name: _add_accounts(spec.settings) for name, spec in platforms.items()}
    sections = _extend(AllPlatformSettings, {name: (section, section()) for name, section in networks.items()})
    looks = {name: spec.ids for name, spec in platforms.items()} | {"all": "ids of any network"}
    ids = _extend(PlatformIds, {name: (annotated[tuple[str, ...], describe(text)], ()) for name, text in looks.items()})
    choices: Any = tuple[literal[tuple(platforms)], ...]  # type: ignore[misc]
    lists: dict[str, tuple[Any, Any]] = {}
    for field in msgspec.structs.fields(AccessSettings):
        if get_args(field.type)[:1] == (PlatformIds,):
            lists[field.name] = (ids, ids())
        elif field.name == "everybody":
            lists[field.name] = (choices, ())
    access = _extend(AccessSettings, lists)
    return _extend(Settings, {"platforms": (sections, sections()), "access": (access, access())})


def _add_accounts(section: type[PlatformSettings]) -> type[PlatformSettings]:
    """Build a network's section with further bots of the same shape."""
    annotated: Any = Annotated
    accounts = annotated[dict[str, section], describe(ACCOUNTS)]  # type: ignore[valid-type]
    return _extend(section, {"accounts": (accounts, {})})


def _extend(struct: type[S], fields: Mapping[str, tuple[Any, Any]]) -> type[S]:
    """Make a struct with these types and defaults for fields that it has, which say the same, and further fields."""
    annotated: Any = Annotated
    said = {field.name: getattr(field.type, "__metadata__", ()) for field in msgspec.structs.fields(struct)}
    return msgspec.defstruct(  # type: ignore[return-value] # a subclass, which its signature does not say
        struct.__name__,
        [
            (name, annotated[(kind, *said[name])] if said.get(name) else kind, default)
            for name, (kind, default) in fields.items()
        ],
        bases=(struct,),
        namespace={"__doc__": struct.__doc__},
        module=struct.__module__,
        frozen=True,
        kw_only=True,
    )


def _list_variables(struct: inspect.StructType, path: KeyPath) -> Iterator[SettingVariable]:
    for field in struct.fields:
        here, kind = (*path, field.encode_name), unwrap_type(field.type)
        if isinstance(kind, inspect.StructType):
            yield from _list_variables(kind, here)
        elif isinstance(kind, inspect.VarTupleType) and not isinstance(unwrap_type(kind.item_type), inspect.StructType):
            yield SettingVariable(_variable_of(here), here, "list")
        elif not isinstance(kind, inspect.VarTupleType | inspect.DictType):
            yield SettingVariable(_variable_of(here), here, "flag" if isinstance(kind, inspect.BoolType) else "text")


def ending_of(account: str) -> str:
    """Return the suffix of a network's variables for an account: `_WORK`."""
    return f"_{account.upper().replace('-', '_')}"


def describe_former(path: KeyPath) -> str:
    """Say that a setting does nothing any more."""
    return f"`{'.'.join(path)}` does nothing any more: {FORMER_SETTINGS[path]}"


def _variable_of(path: KeyPath) -> str:
    """Return the variable of a setting: GATEWAY_LOGS_LEVEL, or GATEWAY_SHUTDOWN_TIMEOUT for a setting of `gateway`."""
    return PREFIX + "_".join(path[1:] if path[0] == "gateway" else path).upper()


def unwrap_type(kind: inspect.Type) -> inspect.Type:
    """Return the type without its description and without None."""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        else:
            kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind
