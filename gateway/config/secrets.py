"""The secret values. They are recognized by value: a name says little, and an error message shows the value alone.

Settings of the secret type, the secrets of webhooks and systemd's credentials are always secret. A value of `.env`, or
of a variable passed by name (`env:`), is secret unless it is plainly public: see `is_public_value`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import inspect

from gateway.config.environment import Environment, SourcedValue
from gateway.config.fields import Secret
from gateway.config.platform_settings import list_accounts
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema, unwrap_type
from gateway.config.settings import Settings
from gateway.logs.redaction import REPLACEMENT, SECRET_NAME
from gateway.yaml_source.binder import describe_shape
from gateway.yaml_source.node_paths import KeyPath

MIN_LENGTH = 8  # for values that are not declared as secret
_NAME = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|AUTHORIZATION|CREDENTIALS?)(_|\Z)|_KEY\Z")
_LOCALE = re.compile(r"(C|POSIX|[a-z]{2,3}_[A-Z]{2})(\.[A-Za-z0-9-]+)?(@[a-z]+)?\Z")
_TIME_ZONE = re.compile(r"[A-Z][A-Za-z]+(/[A-Z][A-Za-z_+-]*[0-9]{0,2}){1,2}\Z")
_LOGIN = re.compile(r"(\w://)[^/?#\s@]+@")
_QUERY_VALUE = re.compile(r"(?<=[?&;])([^=&;#\s]+)=[^&;#\s]+")
_WORDS = frozenset({"critical", "disabled", "production", "development", "localhost", "application/json"})


def list_secrets(settings: Settings, outside: Environment, schema: SettingsSchema) -> Iterator[str]:
    """Yield every value that must never be shown; a value may come several times."""
    yield from _list_settings(settings)
    yield from (outside.environ.get(webhook.secret_env, "") for webhook in settings.webhooks.values())
    public = list_public_variables(schema, settings)
    for name, value in outside.values.items():
        if name not in public and _is_secret_variable(name, value):
            yield value.text


def list_public_variables(schema: SettingsSchema, settings: Settings) -> frozenset[str]:
    """List the variables whose settings are public: names of models, ids of people, addresses."""
    secret = {*_walk_secrets(describe_shape(schema.settings), ())}
    public = {one.variable for one in (*schema.own_variables, *schema.hermes_variables) if one.path not in secret}
    for one in list_accounts(settings.platforms):
        if one.account:
            own = dict(schema.list_platform_secrets(one.platform, one.account))
            named = schema.list_account_variables(one.platform, one.account)
            public |= {name.variable for name in named if name.path not in own}
    addresses = {offer.url_variable for offer in PROVIDERS.values()}
    return frozenset({*public, *schema.allow_all_variables, *schema.account_lists.values()} | addresses)


def replace_secrets(text: str) -> str:
    """Replace passwords and tokens in the addresses of the text, found by their place or name."""
    return _QUERY_VALUE.sub(_mask_named, _LOGIN.sub(rf"\1{REPLACEMENT}@", text)) if "://" in text else text


def replace_secret_arguments(words: Iterable[str]) -> Iterator[str]:
    """Mask the arguments of a program: an option or a variable with such a name gives away its value."""
    is_value = False
    for word in words:
        name, has_value, _ = word.partition("=")
        is_secret = SECRET_NAME.search(name.lstrip("-")) is not None and "://" not in name
        if is_value and not word.startswith("-"):
            yield REPLACEMENT
        else:
            yield f"{name}={REPLACEMENT}" if is_secret and has_value else replace_secrets(word)
        is_value = is_secret and not has_value and word.startswith("-")


def _mask_named(found: re.Match[str]) -> str:
    return f"{found[1]}={REPLACEMENT}" if SECRET_NAME.search(unquote(found[1])) else found[0]


def is_public_value(text: str) -> bool:
    """Return True for a value that is plainly public: short, digits, a path, an address without a user, or a word."""
    if len(text) < MIN_LENGTH or text.isdecimal() or text.startswith(("/", "~/", "./", "../")):
        return True
    if "://" in text:
        return _has_no_user(text)
    return text.lower() in _WORDS or bool(_LOCALE.match(text) or _TIME_ZONE.match(text))


def _has_no_user(text: str) -> bool:
    try:
        return "@" not in urlsplit(text).netloc
    except ValueError:
        return False


def _is_secret_variable(name: str, value: SourcedValue) -> bool:
    match value.layer:
        case "credential":
            return True
        case "file":
            return not is_public_value(value.text) or _is_secret_by_name(name, value.text)
    return _is_secret_by_name(name, value.text)


def _is_secret_by_name(name: str, text: str) -> bool:
    return bool(_NAME.search(name.upper())) and not text.isdecimal() and not text.startswith("/")


def _list_settings(value: Any, name: str = "") -> Iterator[str]:
    """Yield every secret in the settings. Values of a mapping (a tool server's environment) are judged by name too."""
    match value:
        case Secret() if value and (
            not name or not is_public_value(value.reveal()) or _is_secret_by_name(name, value.reveal())
        ):
            yield value.reveal()
        case msgspec.Struct():
            for field_name in value.__struct_fields__:
                yield from _list_settings(getattr(value, field_name))
        case dict():
            for key, below in value.items():
                yield from _list_settings(below, str(key))


def _walk_secrets(struct: inspect.StructType, path: KeyPath) -> Iterator[KeyPath]:
    for field in struct.fields:
        here, kind = (*path, field.encode_name), unwrap_type(field.type)
        if isinstance(kind, inspect.StructType):
            yield from _walk_secrets(kind, here)
        elif isinstance(kind, inspect.CustomType) and kind.cls is Secret:
            yield here
