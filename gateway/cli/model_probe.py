"""Whether a model can be reached, takes our key, and which others are offered there: the list of models tells."""

import json
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from typing import NamedTuple

from gateway.config.providers import PROVIDERS, list_other_urls
from gateway.config.settings import ModelSettings

PROBE_TIMEOUT = 8.0
MAX_NAMES_SHOWN = 5
MAX_ANSWER_BYTES = 4_000_000
# What comes from there may be no HTTP, or no JSON, or nested deeper than a parser goes.
UNREADABLE = (HTTPException, ValueError, RecursionError)


class ModelFault(NamedTuple):
    """What is wrong with the way to a model, and what helps."""

    what: str
    remedy: str
    is_of_key: bool = False


def probe_model(model: ModelSettings) -> ModelFault | None:
    """What is wrong with the way to this model, as far as the list of models tells."""
    found, fault = fetch_model_names(model)
    if fault is None and found and model.name not in found:
        there = ", ".join(found[:MAX_NAMES_SHOWN]) + (", ..." if len(found) > MAX_NAMES_SHOWN else "")
        return ModelFault(f"{address_of(model)} has no model {model.name!r}", f"there is: {there}")
    return fault


def fetch_model_names(model: ModelSettings, patience: float = PROBE_TIMEOUT) -> tuple[list[str], ModelFault | None]:
    """The models that are offered where this one is, or why they cannot be asked for; an endpoint may have no list."""
    address = address_of(model)
    try:
        with urllib.request.urlopen(_build_request(model, address), timeout=patience) as answer:  # noqa: S310 - checked: http
            return sorted(_parse_model_names(answer.read(MAX_ANSWER_BYTES))), None
    except urllib.error.HTTPError as error:
        if error.code in (404, 405) and (right := _find_right_address(model, address)):
            fault = ModelFault(
                f"{address} is not where a model answers (HTTP {error.code})", f"write base_url: {right}"
            )
            return [], fault
        return [], _fault_from_status(error.code, address)
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        return [], ModelFault(f"{address} cannot be reached: {reason}", "see that it runs, and that base_url is right")
    except UNREADABLE:
        return [], ModelFault(f"{address} gives no list of models", "see that base_url is right")


def address_of(model: ModelSettings) -> str:
    return (model.base_url or PROVIDERS[model.provider].base_url).rstrip("/")


def _find_right_address(model: ModelSettings, address: str) -> str:
    """The first address near the configured one that lists models; empty where there is none."""
    for near in list_other_urls(address, "/v1/models" if model.provider == "anthropic" else "/models"):
        request = _build_request(model, near)
        with suppress(OSError, *UNREADABLE), urllib.request.urlopen(request, timeout=PROBE_TIMEOUT) as answer:  # noqa: S310 - checked: http
            if _parse_model_names(answer.read(MAX_ANSWER_BYTES)):
                return near
    return ""


def _build_request(model: ModelSettings, address: str) -> urllib.request.Request:
    key = model.api_key.reveal()
    if model.provider == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return urllib.request.Request(f"{address}/v1/models", headers=headers)  # noqa: S310 - the settings say http(s)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return urllib.request.Request(f"{address}/models", headers=headers)  # noqa: S310 - the settings say http(s)


def _fault_from_status(code: int, address: str) -> ModelFault | None:
    """An endpoint without such a list is no fault: it answered."""
    if code in (401, 403):
        return ModelFault(
            f"{address} refuses the key (HTTP {code})",
            "put the right one into .env; which is used: hermes-gateway config show --origin",
            is_of_key=True,
        )
    if code >= 500 and code != 501:
        return ModelFault(f"{address} is ill (HTTP {code})", "try again later")
    return None


def _parse_model_names(data: bytes) -> set[str]:
    """The ids in the list; none where the answer is another."""
    found = json.loads(data)
    listed = found.get("data") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return set()
    return {str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one}
