"""The plan to change settings: some by their names, or those of a model or of a network.

The values are written as `config set` writes them. A secret is shown by its last four characters and by what it opens:
the network says which bot a token is of, and a key is named with the address that it goes to.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.adapter_loading import load_part
from gateway.adapters.shared.folder import PlatformCheck
from gateway.config.change_writer import check_files, write_change
from gateway.config.changes import SettingChange, prepare_settings, refuse_override, split_key
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, read_configuration
from gateway.config.platform_settings import list_accounts
from gateway.config.providers import PROVIDERS
from gateway.config.reference import as_text, list_values, values_of
from gateway.config.schema import SettingsSchema
from gateway.config.settings import ModelSettings
from gateway.errors import AdapterError, ConfigError
from gateway.files.folders import read_plain_file
from gateway.messages.message import LiteralText
from gateway.proposals.verbs import ProposalKind
from gateway.threads import run_in_thread

SHOWN_SIGNS = 4  # of a secret
LONG_ENOUGH = 16  # characters of a secret of which four may be shown
NOT_ASKED = "Its network was not asked, since other settings change with it"
PROXY = "proxy"  # a secret, for it may hold a password, and also an address: nothing goes there before a yes
SHORTEST_SECRET = 4  # characters; a shorter one is found in any text
NO_SECRETS = (
    "a secret would be shown to all who see the proposal\n"
    "name its setting by itself, or write ${NAME} here and NAME=... into .env"
)

Reload: TypeAlias = Callable[[], Awaitable[tuple[list[str], list[str]]]]
"""Reads the configuration again; returns the settings that changed, and those that count after a restart."""


def collect_settings(kind: ProposalKind, name: str, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the values by the whole names of their settings.

    Raises:
        ConfigError: nothing is to change, or the fields are not those of a model or a network.
    """
    if not values or (kind == "network" and not name):
        raise ConfigError("nothing is named that is to change")
    if kind == "settings":
        return dict(values)
    quoted = '"' + name.replace('"', "") + '"' if "." in name else name
    above = f"platforms.{quoted}" if kind == "network" else f"models.{quoted}" if name else "model"
    return {f"{above}.{field}": value for field, value in values.items()}


class SettingsPlan:
    """A change of settings. Raises ConfigError if it cannot be written, before a question is put."""

    def __init__(
        self,
        schema: SettingsSchema,
        home: Home,
        current: Configuration,
        kind: ProposalKind,
        values: Mapping[str, str | None],
        reload: Reload | None,
    ) -> None:
        for key in values:
            name = ".".join(split_key(key))
            refuse_override(key, next(iter(list_values(current, "", name))).origin)
        self.kind: str = kind
        self._schema, self._home, self._current = schema, home, current
        self._values, self._reload = values, reload
        self._change: SettingChange = prepare_settings(schema, home, get_process_environment(), values)
        self.name = self._change.name
        check_files(self._change)
        self._seen = self._read_files()
        drafts = {file.path: file.after for file in self._change.files}
        planned, _ = read_configuration(schema, home, get_process_environment(), drafts=drafts)
        if planned is None:
            raise ConfigError(
                "config.yaml has an error, and no setting is changed beside it\nhermes-gateway config check"
            )
        self._planned = planned

    def make_digest(self) -> bytes:
        return bytes.fromhex(self._change.digest)

    async def look(self) -> tuple[LiteralText, ...]:
        files = [LiteralText(f"Written to {file.path.name}:", "\n".join(file.lines)) for file in self._change.files]
        self._refuse_shown_secrets([one.text for one in files])
        before = values_of(self._current.settings)
        now = [f"{key}: {_find_value(before, key)}" for key in self._values]
        warnings = [LiteralText("A warning:", f"{one.what}; {one.remedy}") for one in self._change.warnings]
        secrets = [LiteralText("It ends with:", self._show_end(key)) for key in self._change.secrets]
        opens = [await self._name_opened(key) for key in self._change.secrets]
        return (*files, LiteralText("As it is now:", "\n".join(now)), *secrets, *opens, *warnings)

    async def apply(self) -> str:
        await run_in_thread(self._write)
        written = f"written to {', '.join(str(file.path) for file in self._change.files)}"
        if self._reload is None:
            return f"{written}; in force after a restart"
        try:
            _, later = await self._reload()
        except ConfigError as error:
            return f"{written}, and not in force: {error}"
        return f"{written}; in force {'after a restart: ' + ', '.join(later) if later else 'now'}"

    def _write(self) -> None:
        """Write it, if what was shown beside it still holds: the other file may hold the address of a key."""
        check_files(self._change)
        if self._read_files() != self._seen:
            raise ConfigError("config.yaml or .env has changed meanwhile; nothing was written")
        write_change(self._home, self._change)

    def _read_files(self) -> list[bytes]:
        files = (path for path in (self._home.config, self._home.env) if path.exists())
        return [sha256(str(path).encode() + read_plain_file(path)).digest() for path in files]

    def _refuse_shown_secrets(self, shown: Sequence[str]) -> None:
        """Raise ConfigError for a new secret in what is shown: in a whole section, or a tool server's environment."""
        plain = [text or "" for key, text in self._values.items() if key not in self._change.secrets]
        new = [one for one in self._planned.secrets - self._current.secrets if len(one) >= SHORTEST_SECRET]
        if any(one in text for one in new for text in (*shown, *plain)):
            raise ConfigError(NO_SECRETS)

    def _show_end(self, key: str) -> str:
        value = self._values[key] or ""
        return f"…{value[-SHOWN_SIGNS:]}" if len(value) >= LONG_ENOUGH else "(too short to show a part of it)"

    async def _name_opened(self, key: str) -> LiteralText:
        """Name what a secret opens.

        Raises:
            AdapterError: the network does not accept the token.
        """
        path = split_key(key)
        if is_proxy(key):
            return LiteralText("It goes through:", (self._values[key] or "").rpartition("@")[2])
        if path[0] == "platforms":
            return await self._name_bot(path[1], path[3] if path[2] == "accounts" else "")
        settings = self._planned.settings.model if path[0] == "model" else self._find_model(path)
        if settings is None:
            return LiteralText("The address to which it goes is not known here")
        offered = PROVIDERS.get(settings.provider)
        return LiteralText("It goes to:", settings.base_url or (offered.base_url if offered else settings.provider))

    def _find_model(self, path: tuple[str, ...]) -> ModelSettings | None:
        return self._planned.settings.models.get(path[1]) if path[0] == "models" else None

    async def _name_bot(self, network: str, account: str) -> LiteralText:
        """Ask the network which bot it is; not at an address that is a part of the proposal."""
        place, tokens = list_places(self._home)[network], {key for key in self._change.secrets if not is_proxy(key)}
        others = {split_key(key)[-1] for key in self._values if key not in tokens} - {"enabled"}
        bots = list_accounts(self._planned.settings.platforms)
        settings = [one.settings for one in bots if (one.platform, one.account) == (network, account)]
        if others or place.origin or not settings:
            return LiteralText(NOT_ASKED)
        check: PlatformCheck = load_part(place, "check")
        try:
            report = await check.check(settings[0])
        except AdapterError as error:
            raise AdapterError(f"{network}: {error}") from None
        return LiteralText("It is the token of:", report.who)


def is_proxy(key: str) -> bool:
    return split_key(key)[-1] == PROXY


def _find_value(before: object, key: str) -> str:
    for part in split_key(key):
        before = before.get(part) if isinstance(before, dict) else None
    return "not set" if before is None else as_text(before)
