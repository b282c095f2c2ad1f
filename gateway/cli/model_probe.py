"""Ask a model for a few tokens, and its endpoint for the names of its models, to see what is wrong and what helps.

"It answers" is said of a model that has answered: the call has the configured address, key and name. The list of models
helps to choose one, and to explain a call that failed.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any, NamedTuple

from gateway.cli.output import show_progress
from gateway.config.providers import PROVIDERS, list_other_urls
from gateway.config.settings import ModelSettings
from gateway.logs.redaction import REPLACEMENT
from gateway.logs.text import to_one_line

PROBE_TIMEOUT = 8.0
CALL_TIMEOUT = 60.0  # a server on this machine may first have to load the model
LOADING_SECONDS = 5.0
MOST_TOKENS = 16
LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"  # some models refuse the first, many servers the second
MAX_NAMES_SHOWN = 5
MAX_ANSWER_BYTES = 4_000_000
MAX_WORDS = 200  # of an error
UNREADABLE = (HTTPException, ValueError, RecursionError)  # no HTTP, no JSON, or nested deeper than a parser goes


class ModelFault(NamedTuple):
    """A fault on the way to a model, and its remedy."""

    what: str
    remedy: str
    is_of_key: bool = False


def probe_model(model: ModelSettings) -> ModelFault | None:
    """Return what is wrong with this model; None: it has answered."""
    fault = ask_model(model)
    if fault is None or fault.is_of_key:
        return fault
    found, _ = fetch_model_names(model)
    if found and model.name not in found:
        there = ", ".join(found[:MAX_NAMES_SHOWN]) + (", ..." if len(found) > MAX_NAMES_SHOWN else "")
        return ModelFault(f"{address_of(model)} has no model {model.name!r}", f"there is: {there}")
    return fault


@contextmanager
def show_loading() -> Iterator[None]:
    """Say what lasts, while models are asked."""
    with show_progress("the model is being loaded", after=LOADING_SECONDS):
        yield


def ask_model(model: ModelSettings) -> ModelFault | None:
    """Make one small call, and return why there is no answer to it."""
    fault, words = _call(model, LIMIT)
    if NEWER_LIMIT in words:
        fault, _ = _call(model, NEWER_LIMIT)
    return fault


def _call(model: ModelSettings, limit: str) -> tuple[ModelFault | None, str]:
    """A fault, and the endpoint's own words about it."""
    address = address_of(model)
    try:
        with _open(_build_call(model, limit), CALL_TIMEOUT) as answer:
            given = json.loads(answer.read(MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        words = _read_words(error, model)
        return _fault_from_status(error.code, model, words), words
    except OSError as error:
        return _fault_from_network(error, address), ""
    except UNREADABLE:
        given = None
    if isinstance(given, dict) and given.get("stop_reason" if model.provider == "anthropic" else "choices"):
        return None, ""
    return ModelFault(f"{address} gives something else than a model's answer", "see that base_url is right"), ""


def fetch_model_names(model: ModelSettings, patience: float = PROBE_TIMEOUT) -> tuple[list[str], ModelFault | None]:
    """The models that are offered where this one is, or why they cannot be asked for; an endpoint may have no list."""
    address = address_of(model)
    try:
        with _open(_build_request(model, address), patience) as answer:
            return sorted(_parse_model_names(answer.read(MAX_ANSWER_BYTES))), None
    except urllib.error.HTTPError as error:
        if error.code in (401, 403) or 500 <= error.code != 501:
            return [], _fault_from_status(error.code, model, _read_words(error, model))
        right = _find_right_address(model, address)
        return [], _fault_from_path(address, error.code, right) if right else None
    except OSError as error:
        return [], _fault_from_network(error, address)
    except UNREADABLE:
        return [], ModelFault(f"{address} gives no list of models", "see that base_url is right")


def address_of(model: ModelSettings) -> str:
    return (model.base_url or PROVIDERS[model.provider].base_url).rstrip("/")


def _find_right_address(model: ModelSettings, address: str) -> str:
    """What to write: the first address near the configured one that lists models, or wants a key to do so."""
    for near in list_other_urls(address, "/v1/models" if model.provider == "anthropic" else "/models"):
        try:
            with _open(_build_request(model, near), PROBE_TIMEOUT) as answer:
                if _parse_model_names(answer.read(MAX_ANSWER_BYTES)):
                    return near
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                return f"{near}, and a key that is right" if model.api_key.reveal() else f"{near}, and a key"
        except (OSError, *UNREADABLE):
            continue
    return ""


def _open(request: urllib.request.Request, patience: float) -> Any:
    return urllib.request.urlopen(request, timeout=patience)  # noqa: S310 - the settings say http(s)


def _build_request(model: ModelSettings, address: str) -> urllib.request.Request:
    path = "/v1/models" if model.provider == "anthropic" else "/models"
    return urllib.request.Request(f"{address}{path}", headers=_build_headers(model))  # noqa: S310 - as above


def _build_call(model: ModelSettings, limit: str) -> urllib.request.Request:
    path = "/v1/messages" if model.provider == "anthropic" else "/chat/completions"
    body = {"model": model.name, "messages": [{"role": "user", "content": "Say: ok"}], limit: MOST_TOKENS}
    headers = {"Content-Type": "application/json", **_build_headers(model)}
    return urllib.request.Request(f"{address_of(model)}{path}", json.dumps(body).encode(), headers)  # noqa: S310 - as above


def _build_headers(model: ModelSettings) -> dict[str, str]:
    key = model.api_key.reveal()
    if model.provider == "anthropic":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return {"Authorization": f"Bearer {key}"} if key else {}


def _read_words(error: urllib.error.HTTPError, model: ModelSettings) -> str:
    """Return the words of the endpoint without the key: some repeat the request."""
    words = b""
    with suppress(OSError, *UNREADABLE):
        words = error.read(MAX_ANSWER_BYTES)
    text = words.decode(errors="replace")
    with suppress(*UNREADABLE, TypeError, KeyError):
        said = json.loads(words)["error"]
        text = str(said["message"] if isinstance(said, dict) else said)
    key = model.api_key.reveal()
    return to_one_line(text.replace(key, REPLACEMENT) if key else text)[:MAX_WORDS]


def _fault_from_network(error: OSError, address: str) -> ModelFault:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return ModelFault(
            f"{address} gave no answer in time", "see that it runs, and that the model fits into its memory"
        )
    return ModelFault(f"{address} cannot be reached: {reason}", "see that it runs, and that base_url is right")


def _fault_from_path(address: str, code: int, right: str) -> ModelFault:
    return ModelFault(f"{address} is not where a model answers (HTTP {code})", f"write base_url: {right}")


def _fault_from_status(code: int, model: ModelSettings, words: str) -> ModelFault:
    address = address_of(model)
    if code in (404, 405) and (right := _find_right_address(model, address)):
        return _fault_from_path(address, code, right)
    if code in (401, 403):
        return ModelFault(
            f"{address} refuses the key (HTTP {code})",
            "put the right one into .env; which is used: hermes-gateway config show --origin",
            is_of_key=True,
        )
    said = f"(HTTP {code}: {words})" if words else f"(HTTP {code})"
    if code in (402, 429):
        return ModelFault(f"{address} does not answer now {said}", "try again later, and look at your limits there")
    if code >= 500 and code != 501:
        return ModelFault(f"{address} is ill {said}", "try again later")
    return ModelFault(f"{address} refuses a call of {model.name!r} {said}", "see that base_url and the name are right")


def _parse_model_names(data: bytes) -> set[str]:
    """The ids in the list; none where the answer is another."""
    found = json.loads(data)
    listed = found.get("data") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return set()
    return {str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one}
