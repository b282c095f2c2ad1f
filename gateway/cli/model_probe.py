"""Whether a model's endpoint is there: one short question for the list of its models, which costs nothing."""

import json
import urllib.error
import urllib.request
from typing import NamedTuple

from gateway.config.agent_settings import ModelSettings
from gateway.config.providers import PROVIDERS

PROBE_TIMEOUT = 8.0
MAX_NAMES_SHOWN = 5
MAX_ANSWER_BYTES = 4_000_000


class EndpointFault(NamedTuple):
    what: str
    remedy: str


def probe_model(model: ModelSettings) -> EndpointFault | None:
    """What is wrong with the way to this model, as far as the list of models tells."""
    address = (model.base_url or PROVIDERS[model.provider].base_url).rstrip("/")
    try:
        with urllib.request.urlopen(_build_request(model, address), timeout=PROBE_TIMEOUT) as answer:  # noqa: S310 - checked: http
            found = _parse_model_names(answer.read(MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        return _fault_from_status(error.code, address)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return EndpointFault(f"{address} cannot be reached: {reason}", "see that it runs, and that base_url is right")
    if found and model.name not in found:
        there = ", ".join(sorted(found)[:MAX_NAMES_SHOWN]) + (", ..." if len(found) > MAX_NAMES_SHOWN else "")
        return EndpointFault(f"{address} has no model {model.name!r}", f"there is: {there}")
    return None


def _build_request(model: ModelSettings, address: str) -> urllib.request.Request:
    key = model.api_key.reveal()
    if model.provider == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return urllib.request.Request(f"{address}/v1/models", headers=headers)  # noqa: S310 - the settings say http(s)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return urllib.request.Request(f"{address}/models", headers=headers)  # noqa: S310 - the settings say http(s)


def _fault_from_status(code: int, address: str) -> EndpointFault | None:
    """An endpoint without such a list is no fault: it answered."""
    if code in (401, 403):
        return EndpointFault(
            f"{address} refuses the key (HTTP {code})",
            "put the right one into .env; which is used: hermes-gateway config show --origin",
        )
    if code >= 500:
        return EndpointFault(f"{address} is ill (HTTP {code})", "try again later")
    return None


def _parse_model_names(data: bytes) -> set[str]:
    """The ids in the list; none where the answer is another."""
    found = json.loads(data)
    listed = found.get("data", []) if isinstance(found, dict) else []
    return {str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one}
