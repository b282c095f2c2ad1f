"""Plans the change of settings: what is where afterwards, checked as if it were written already.

A setting is written where its value in force is: secrets, and what is in `.env`, into `.env`; all else into
`config.yaml`. A value that a stronger source sets is refused, with its place.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from gateway.config.env_lines import remove_variable, set_variable
from gateway.config.environment import Environment, find_references, read_environment
from gateway.config.home import Home
from gateway.config.loading import FILE_LIMIT, read_configuration
from gateway.config.merge import list_secret_paths
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema, SettingVariable
from gateway.config.settings import HooksSettings
from gateway.errors import ConfigError, ExitCode
from gateway.files.folders import read_plain_file
from gateway.logs.text import to_one_line
from gateway.yaml_source.edit import EditError, format_lines, format_node, remove_value, set_value
from gateway.yaml_source.node_paths import KeyPath, Shape, find_node, node_of, put_node
from gateway.yaml_source.parser import parse_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlMapping, YamlNode, YamlScalar

STRONGER = ("the variable ", "the credential ", "the command line")  # begin the origins that no file overrides
_KEY = re.compile(r'"([^"]+)"|([^."]+)')
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")


class ChangeError(ConfigError):
    """The setting cannot be changed like this; nothing was written."""

    exit = ExitCode.CONFIG


class FileChange(Struct, frozen=True):
    """A file as it was (None: not there) and as it is to be; `lines` are those that a person would write."""

    path: Path
    before: bytes | None
    after: bytes
    lines: tuple[str, ...]


class SettingChange(Struct, frozen=True):
    """A change of settings, the new warnings that it causes, and the names of its secret settings."""

    name: str
    files: tuple[FileChange, ...]
    warnings: tuple[Finding, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The checksum of the whole plan and of the files as they were."""
        found = sha256(self.name.encode())
        for file in self.files:
            for part in (str(file.path).encode(), file.before or b"", file.after):
                found.update(len(part).to_bytes(8, "big") + part + bytes([file.before is None]))
        return found.hexdigest()


class Drafts(Struct, frozen=True):
    """The planned files, and the names of the settings in them that are secret."""

    files: dict[Path, FileChange] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)

    def add(self, path: Path, before: bytes | None, after: bytes, lines: list[str]) -> None:
        """Plan a change of a file, which may be planned to change already."""
        known = self.files.get(path) or FileChange(path, before, after, ())
        self.files[path] = FileChange(path, known.before, after, (*known.lines, *lines))

    def find(self, path: Path) -> bytes | None:
        """Return the planned content of a file; None if it does not change."""
        return self.files[path].after if path in self.files else None


class Sources:
    """The two files, as they are now or in `drafts`, and what is in them and around them."""

    def __init__(
        self, schema: SettingsSchema, home: Home, environ: Mapping[str, str], drafts: Drafts | None = None
    ) -> None:
        self.home, self.environ, self.drafts = home, environ, drafts or Drafts()
        config, env = self.drafts.find(home.config), self.drafts.find(home.env)
        self.config = _read_file(home.config) if config is None else config
        self.env = _read_file(home.env) if env is None else env
        self.root = parse_yaml(self.config or b"", str(home.config)).root
        self.outside: Environment = read_environment(environ, home.env, env)
        self.base = schema
        self.schema = schema.expand(home, self.root, self.outside)

    def find_variable(self, path: KeyPath) -> SettingVariable | None:
        """Find the variable that sets this now: the strongest one, or the usual one of the model's provider."""
        named = [one for one in self._variables() if one.path == path and one.variable in self.outside.values]
        if named or find_node(self.root, path) is not None:
            return named[-1] if named else None
        provider = find_node(self.root, (*path[:-1], "provider")) if path[0] in ("model", "models") else None
        offer = PROVIDERS.get(provider.text) if isinstance(provider, YamlScalar) else None
        usual = {"api_key": offer.key_variable, "base_url": offer.url_variable}.get(path[-1]) if offer else None
        return SettingVariable(usual, path, "text") if usual and usual in self.outside.values else None

    def find_shape(self, path: KeyPath) -> Shape | None:
        """Find how the setting's text is read; None: as YAML."""
        return next((one.shape for one in self._variables() if one.path == path), None)

    def find_secret(self, path: KeyPath) -> str | None:
        """Find the variable that a secret belongs into; None for what is not a secret."""
        tree = self.root if find_node(self.root, path) is not None else put_node(self.root, path, YamlScalar(_HERE, ""))
        variable = dict(list_secret_paths(self.schema, tree)).get(path)
        return f"MODEL_{path[1].upper()}_API_KEY".replace("-", "_") if variable == "MODEL_API_KEY" else variable

    def _variables(self) -> Iterator[SettingVariable]:
        yield from self.schema.hermes_variables
        yield from self.schema.own_variables
        for platform in self.schema.platforms:
            accounts = find_node(self.root, ("platforms", platform, "accounts"))
            for account in accounts if isinstance(accounts, YamlMapping) else ():
                yield from self.schema.list_account_variables(platform, account)


_HERE = SourceLocation("the command line")


def split_key(key: str) -> KeyPath:
    """Return the path of a setting's name; a part with a dot in it is quoted: `prices."gpt-4.1".input`."""
    parts = [found[1] or found[2] for found in _KEY.finditer(key)]
    if not parts or re.fullmatch(r'(?:"[^"]+"|[^."]+)(?:\.(?:"[^"]+"|[^."]+))*', key) is None:
        raise ChangeError(f"`{key}` is not the name of a setting\nwrite one such as `logs.level`, and quote dots")
    return tuple(parts)


def refuse_override(key: str, origin: str) -> None:
    """Raise ChangeError if the running gateway has this setting from where no file reaches."""
    if origin.startswith(STRONGER):
        what = f"`{to_one_line(key, 100)}` is set by {origin} of the running gateway, which counts more than a file"
        raise ChangeError(f"{what}\nchange it there, or remove it there first")


def prepare_settings(
    schema: SettingsSchema, home: Home, environ: Mapping[str, str], values: Mapping[str, str | None]
) -> SettingChange:
    """Plan to set these values, and to remove those that are None, so that their next source or the default counts.

    Nothing is written.

    Raises:
        ChangeError: one is set where no file reaches, is not right, or cannot be edited; or one to remove is not set.
    """
    drafts = Drafts()
    for key, text in values.items():
        sources = Sources(schema, home, environ, drafts)
        path = _choose_path(sources, split_key(key))
        try:
            _remove(sources, path) if text is None else _set(sources, key, path, text)
        except EditError as error:
            told = "" if text is not None else "\nwhat is in effect: hermes-gateway config show --origin"
            raise ChangeError(f"`{key}` {error}{told}") from None
    files = (*drafts.files.values(),)
    new = _check(Sources(schema, home, environ), values, files)
    return SettingChange(", ".join(values), files, tuple(new), tuple(drafts.secrets))


def prepare_variables(home: Home, values: Mapping[str, str]) -> SettingChange:
    """Plan to set these variables of `.env`, where they are or at its end. Raises ChangeError as above."""
    before = _read_file(home.env)
    after = before or b""
    for name, value in values.items():
        try:
            after = set_variable(after, name, value)
        except EditError as error:
            raise ChangeError(f"{name} {error}") from None
    lines = tuple(f"{name}=..." for name in values)
    return SettingChange(", ".join(values), (FileChange(home.env, before, after, lines),))


def _set(sources: Sources, key: str, path: KeyPath, text: str) -> None:
    variable, refers = _find_place(sources, path)
    if variable:
        is_secret = sources.find_secret(path) is not None
        sources.drafts.secrets.extend([key] if is_secret else ())
        after = set_variable(sources.env or b"", variable, text)
        line = f"{variable}={'...' if is_secret else text}"
        sources.drafts.add(sources.home.env, sources.env, after, [line])
    if not variable or refers:
        node = YamlScalar(_HERE, f"${{{variable}}}") if refers else _parse_value(sources, path, text)
        after = set_value(sources.config or b"", path, node)
        sources.drafts.add(sources.home.config, sources.config, after, format_lines(path, format_node(node)))


def _remove(sources: Sources, path: KeyPath) -> None:
    if found := sources.find_variable(path):
        _refuse_outside(sources, path, found.variable)
        after = remove_variable(sources.env or b"", found.variable)
        sources.drafts.add(sources.home.env, sources.env, after, [f"without {found.variable}="])
    else:
        after = remove_value(sources.config or b"", path)
        sources.drafts.add(sources.home.config, sources.config, after, [f"without {'.'.join(path)}"])


def _choose_path(sources: Sources, path: KeyPath) -> KeyPath:
    """Choose the way in which the file names a hook: `hooks.NAME` is short for `hooks.each.NAME`."""
    if path[0] != "hooks" or len(path) < 2:
        return path
    if path[1] not in HooksSettings.__struct_fields__ and find_node(sources.root, ("hooks", "each", path[1])):
        return ("hooks", "each", *path[1:])
    if path[1] == "each" and len(path) > 3 and find_node(sources.root, ("hooks", path[2])):
        return ("hooks", *path[2:])
    return path


def _find_place(sources: Sources, path: KeyPath) -> tuple[str, bool]:
    """Find the variable of `.env` to write, empty for `config.yaml`; and whether `config.yaml` has to refer to it."""
    if found := sources.find_variable(path):
        _refuse_outside(sources, path, found.variable)
        return found.variable, False
    secret, node = sources.find_secret(path), find_node(sources.root, path)
    if secret is None:
        return "", False
    if isinstance(node, YamlScalar) and (named := _REFERENCE.match(node.text)) and find_references(node.text):
        _refuse_outside(sources, path, named[1])
        return named[1], False
    if not secret:
        return "", False
    _refuse_outside(sources, path, secret)
    return secret, node is not None or path[0] == "models"


def _refuse_outside(sources: Sources, path: KeyPath, variable: str) -> None:
    value = sources.outside.values.get(variable)
    if value and value.layer != "file":
        name = ".".join(path)
        what = f"`{name}` is set by {value.place}, which counts more than a file"
        raise ChangeError(f"{what}\nchange it there, or remove it there first")


def _parse_value(sources: Sources, path: KeyPath, text: str) -> YamlNode:
    shape = sources.find_shape(path)
    if shape and not (shape == "list" and text.startswith(("[", "-"))):
        return node_of(text, _HERE, shape)
    document = parse_yaml(text.encode("utf-8", "surrogateescape"), "the value")
    if wrong := next((one for one in document.findings if one.severity == "error"), None):
        raise ChangeError(f"the value cannot be read: {wrong.what}\n{wrong.remedy}")
    return document.root if text.strip() else YamlScalar(_HERE, "", quoted=True)


def _check(sources: Sources, keys: Collection[str], files: Sequence[FileChange]) -> list[Finding]:
    """Return the warnings that are new with these files; refuse what would be wrong, and is not already."""
    home, drafts = sources.home, {file.path: file.after for file in files}
    if any(len(data) > FILE_LIMIT for data in drafts.values()):
        raise ChangeError(f"the file would be larger than {FILE_LIMIT:,} bytes")
    _, before = read_configuration(sources.base, home, sources.environ)
    _, after = read_configuration(sources.base, home, sources.environ, drafts=drafts)
    named = [f"`{'.'.join(split_key(key))}`" for key in keys]  # they may have been wrong in the same way before
    known = {(one.what, one.remedy) for one in before if not any(name in one.what for name in named)}
    new = [one for one in after if (one.what, one.remedy) not in known]
    wrong = [f"{one.what}; {one.remedy}" for one in new if one.severity == "error"]
    if wrong:
        raise ChangeError("\n".join((wrong[0], *wrong[1:5], "nothing was written")))
    return new


def _read_file(path: Path) -> bytes | None:
    try:
        data = read_plain_file(path, FILE_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ChangeError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_LIMIT:
        raise ChangeError(f"{path} is larger than {FILE_LIMIT:,} bytes")
    return data
