"""The webhooks of this gateway, from the configuration and from hooks, with their current secrets."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gateway.config.loading import Configuration
from gateway.config.webhooks import WebhookSettings
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.web.webhooks.receiver import PATH, Webhook, WebhookCounts
from gateway.web.webhooks.senders import make_key
from gateway.yaml_source.tree import Finding

INSTEAD = "configuration, in place of what hook {name} says"
NO_PORT = "the port is off"
SHORT_SECRET = 16  # characters
MEND = "write it into .env, as the sender has it; a running gateway reads it after: hermes-gateway reload"

LENGTHEN = "make one, for instance with: openssl rand -hex 32; write it into .env and at the sender"


class WebhookStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a webhook, for `status` and `hooks list`. `url` is empty while the port is closed."""

    name: str
    url: str
    origin: str
    verify: str
    secret_env: str
    trouble: str
    remark: str
    taken: int
    known: int
    refused: int
    refusal: str
    refused_at: float


def list_webhooks(configuration: Configuration, hooks: FolderHooks) -> dict[str, Webhook]:
    """List all webhooks by name. A webhook in the configuration replaces a hook's webhook of the same name."""
    written = {one.folder: one.webhook for one in hooks.called_from_outside if one.webhook}
    named = {name: (WebhookSettings(**msgspec.structs.asdict(one)), f"hook {name}") for name, one in written.items()}
    for name, one in configuration.settings.webhooks.items():
        named[name] = (one, INSTEAD.format(name=name) if name in written else "configuration")
    return {name: _find_key(name, *one, configuration.environ) for name, one in named.items()}


def _find_key(name: str, settings: WebhookSettings, origin: str, environ: Mapping[str, str]) -> Webhook:
    secret = environ.get(settings.secret_env, "")
    if not secret.strip():
        state = "is blank" if settings.secret_env in environ else "is not set"
        return Webhook(name, settings, origin, trouble=f"{settings.secret_env} {state}")
    try:
        key = make_key(settings.verify, secret)
    except ValueError as error:
        return Webhook(name, settings, origin, trouble=f"{settings.secret_env}: {error}")
    weak = f"{settings.secret_env} has fewer than {SHORT_SECRET} characters, and can be guessed"
    return Webhook(name, settings, origin, key, remark=weak if len(secret) < SHORT_SECRET else "")


def find_missing_secrets(configuration: Configuration) -> Iterator[Finding]:
    """Find, before a gateway runs, webhooks of the configuration that cannot be called, since they have no secret."""
    for name, settings in configuration.settings.webhooks.items():
        webhook = _find_key(name, settings, "", configuration.environ)
        if webhook.trouble:
            place = configuration.origins[f"webhooks.{name}.secret_env"]
            yield Finding(place, f"the webhook {name} is off: {webhook.trouble}", MEND, "warning")


def find_bad_secrets(configuration: Configuration) -> Iterator[Finding]:
    """Find webhooks of the configuration whose secret can be guessed."""
    for name, settings in configuration.settings.webhooks.items():
        if remark := _find_key(name, settings, "", configuration.environ).remark:
            place = configuration.origins[f"webhooks.{name}.secret_env"]
            yield Finding(place, f"the webhook {name}: {remark}", LENGTHEN, "warning")


def list_webhook_statuses(
    webhooks: Mapping[str, Webhook], url: str, counts: Mapping[str, WebhookCounts]
) -> Iterator[WebhookStatus]:
    """Yield the status of each webhook; `url` is the public address of the port."""
    for name, one in webhooks.items():
        yield WebhookStatus(
            name=name,
            url=f"{url.rstrip('/')}{PATH}{name}" if url else "",
            origin=one.origin,
            verify=one.settings.verify,
            secret_env=one.settings.secret_env,
            trouble=one.trouble or ("" if url else NO_PORT),
            remark=one.remark,
            **msgspec.structs.asdict(counts.get(name, WebhookCounts())),
        )


def list_webhook_problems(statuses: Sequence[WebhookStatus]) -> list[str]:
    """List the webhooks that were set up and cannot be called."""
    return [
        f"webhook {one.name} cannot be called: {one.trouble}" + ("" if one.trouble == NO_PORT else f"; {MEND}")
        for one in statuses
        if one.trouble
    ]


def describe_webhook(statuses: Sequence[WebhookStatus], name: str) -> str:
    """Describe a hook's webhook: its address, and whether it can be called; "" if the hook has no webhook."""
    found = next((one for one in statuses if one.name == name), None)
    if found is None:
        return ""
    state = f"cannot be called: {found.trouble}" if found.trouble else f"{found.secret_env} is set"
    by = f"; {found.origin}" if found.origin == INSTEAD.format(name=name) else ""
    return f"POST {found.url or PATH + name} ({found.verify}, {state}{by})"
