"""The probe of a model: a call for a few tokens, and the endpoint's list of names, to find a fault and its remedy.

Only a model that has answered counts as working: the call uses the client of the gateway's own calls, with the
configured address, key and name. The list of models helps to choose one, and to explain a failed call.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import NamedTuple

import anyio

from gateway.agent.model import ModelRequest
from gateway.agent.models.factory import make_model
from gateway.agent.models.http_model import HttpModel
from gateway.cli.output import show_progress
from gateway.config.home import get_process_environment
from gateway.config.providers import PROVIDERS
from gateway.config.settings import ModelSettings
from gateway.daemon.agents import model_spec_of
from gateway.errors import ModelError
from gateway.logs.text import to_one_line
from gateway.messages.transcript import Entry

PROBE_TIMEOUT = 8.0
CALL_TIMEOUT = 60.0  # a server on this machine may have to load the model first
LOADING_SECONDS = 5.0
MOST_TOKENS = 16
MOST_CALLS = 16  # at a time
LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"  # some models refuse the first, many servers the second
MAX_NAMES_SHOWN = 5
MAX_WORDS = 200  # characters of an error
QUESTION = (Entry("user", "Say: ok"),)
ENDPOINT = "the model's endpoint"  # the name in errors
LATER = ("does not answer now", "try again later, and look at your limits there")
REFUSALS = {
    "auth": ("refuses the key", "put the right one into .env; which is used: hermes-gateway config show --origin"),
    "quota": LATER,
    "rate": LATER,
    "overload": ("is ill", "try again later"),
}
SEE_NAMES = "see that base_url and the name are right"
SEE_SERVER = "see that it runs, that base_url is right, and that the model fits into its memory"
SEE_NETWORK = "see that this machine is online"


class ModelFault(NamedTuple):
    """A fault on the way to a model, and its remedy."""

    what: str
    remedy: str
    is_of_key: bool = False


def show_loading() -> AbstractContextManager[None]:
    """Show progress while models are called."""
    return show_progress("the model is being loaded", after=LOADING_SECONDS)


def probe_models(models: Collection[ModelSettings], environ: Mapping[str, str]) -> list[ModelFault | None]:
    """Return the fault of each model, called at the same time; None: it has answered."""
    return anyio.run(_probe_all, models, environ)


def ask_model(model: ModelSettings) -> ModelFault | None:
    """Make one small call; return the fault if it gets no answer."""
    return anyio.run(_ask, model, get_process_environment())


def fetch_model_names(model: ModelSettings, patience: float = PROBE_TIMEOUT) -> tuple[list[str], ModelFault | None]:
    """Return the models that the endpoint offers, or why they cannot be listed; an endpoint may have no list."""
    return anyio.run(_fetch_names, model, get_process_environment(), patience)


def address_of(model: ModelSettings) -> str:
    return str(model_spec_of("", model, {}).kwargs["base_url"]).rstrip("/")


async def _probe_all(models: Collection[ModelSettings], environ: Mapping[str, str]) -> list[ModelFault | None]:
    faults: list[ModelFault | None] = [None] * len(models)
    limit = anyio.CapacityLimiter(MOST_CALLS)

    async def probe(number: int, model: ModelSettings) -> None:
        async with limit:
            faults[number] = await _probe(model, environ)

    async with anyio.create_task_group() as tasks:
        for number, model in enumerate(models):
            tasks.start_soon(probe, number, model)
    return faults


async def _probe(model: ModelSettings, environ: Mapping[str, str]) -> ModelFault | None:
    fault = await _ask(model, environ)
    if fault is None or fault.is_of_key:
        return fault
    found, _ = await _fetch_names(model, environ, PROBE_TIMEOUT)
    if found and model.name not in found:
        there = ", ".join(found[:MAX_NAMES_SHOWN]) + (", ..." if len(found) > MAX_NAMES_SHOWN else "")
        return ModelFault(f"{address_of(model)} has no model {model.name!r}", f"there is: {there}")
    return fault


async def _ask(model: ModelSettings, environ: Mapping[str, str]) -> ModelFault | None:
    fault = await _call(model, environ, LIMIT)
    return await _call(model, environ, NEWER_LIMIT) if fault and NEWER_LIMIT in fault.what else fault


async def _call(model: ModelSettings, environ: Mapping[str, str], limit: str) -> ModelFault | None:
    try:
        async with _open_model(model, environ, CALL_TIMEOUT) as asked:
            async for _ in asked.stream(ModelRequest(QUESTION, options={limit: MOST_TOKENS})):
                pass
    except ModelError as error:
        return _describe(error, model)
    return None


async def _fetch_names(
    model: ModelSettings, environ: Mapping[str, str], patience: float
) -> tuple[list[str], ModelFault | None]:
    try:
        async with _open_model(model, environ, patience) as asked:
            return await asked.list_names(), None
    except ModelError as error:
        return [], _describe(error, model)


@asynccontextmanager
async def _open_model(model: ModelSettings, environ: Mapping[str, str], patience: float) -> AsyncIterator[HttpModel]:
    """Open the model as the gateway does, but without its options: they may want more tokens. Raises ModelError."""
    spec = model_spec_of("", model, environ)
    made = make_model(spec, spec.model, {**spec.kwargs, "extra": {}})
    assert isinstance(made, HttpModel)
    try:
        with anyio.fail_after(patience):
            yield made
    except TimeoutError:
        raise ModelError(f"{ENDPOINT} took too long to answer", kind="timeout") from None
    finally:
        await made.aclose()


def _describe(error: ModelError, model: ModelSettings) -> ModelFault:
    """Describe a refusal with the endpoint's own words, and a failed connection with the address."""
    address, said = address_of(model), to_one_line(error.what)[:MAX_WORDS]
    if error.remedy or not said.startswith("HTTP "):
        where = said.replace(ENDPOINT, address, 1)
        remedy = SEE_NETWORK if model.provider in PROVIDERS and not model.base_url else SEE_SERVER
        return ModelFault(where if address in where else f"{address}: {where}", error.remedy or remedy)
    refuses, remedy = REFUSALS.get(error.kind, (f"refuses a call of {model.name!r}", SEE_NAMES))
    return ModelFault(f"{address} {refuses} ({said})", remedy, is_of_key=error.kind == "auth")
