"""The factory of models: a configured model is made at its first use, through `model:create`.

A hook there may change the arguments, give a model of its own (used as it is), or a function without arguments that
makes one when it is needed. A model that was made is kept; one that failed is tried again at the next use.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec

from gateway.agent.model import Chunk, Model, ModelRequest
from gateway.agent.models.fallback import FallbackModel, RetryPolicy
from gateway.agent.models.http_model import HttpModel
from gateway.agent.models.prices import UNKNOWN_PRICE, TokenPrice
from gateway.agent.ports import EventRunner
from gateway.config.providers import PROVIDERS
from gateway.errors import ConfigError, ModelError
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as it is configured; `provider` names the module that speaks to it.

    `kwargs` are its arguments as hooks see them; the key is not among them.
    """

    id: str
    provider: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    price: TokenPrice = field(default_factory=TokenPrice)
    prices: Mapping[str, TokenPrice] = field(default_factory=dict)  # of other models of this provider, by their names


def make_model(spec: ModelSpec, model: str, kwargs: dict[str, Any]) -> Model:
    """Make the model, without hooks. Call it in a thread: it may have to load the module that speaks to the provider.

    Raises:
        ConfigError: the provider is unknown, or the model cannot be made with these arguments.
    """
    languages = {offer.language: None for offer in PROVIDERS.values()}
    if spec.provider not in languages:
        raise ConfigError(f"the model {spec.id!r}: there is no provider {spec.provider!r}, only {', '.join(languages)}")
    (module,) = load_modules(f"gateway.agent.models.{spec.provider}")
    if issubclass(module.MODEL, HttpModel):
        price = spec.price if model == spec.model else spec.prices.get(model, UNKNOWN_PRICE)
        kwargs = {"name": model, "api_key": spec.api_key, "price": price, "prices": spec.prices, **kwargs}
    try:
        made: Model = module.MODEL(**kwargs)
    except TypeError as error:
        raise ConfigError(f"the model {spec.id!r} cannot be made: {error}") from None
    return made


class LazyModel(msgspec.Struct, eq=False):
    """A model that is made at its first use. Its repr, its name and its being there make nothing."""

    _spec: ModelSpec
    _run: EventRunner
    _wants: Callable[[str], bool]
    _made: Model | None = None
    _lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

    @property
    def name(self) -> str:
        return self._spec.model or self._spec.provider

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the model's answer; a model that cannot be made is a ModelError."""
        async with self._lock:
            model = self._made = self._made or await self._make()
        async with aclosing(model.stream(request)) as chunks:  # type: ignore[type-var]  # an async generator
            async for chunk in chunks:
                yield chunk

    async def warm(self) -> None:
        """Warm a model as it is configured, to be thrown away: `model:create` happens at the first use."""
        with suppress(ConfigError):
            model = await run_in_thread(make_model, self._spec, self._spec.model, dict(self._spec.kwargs))
            if warm := getattr(model, "warm", None):
                await warm()

    async def aclose(self) -> None:
        """Close what the model holds open, if it was ever made."""
        close = getattr(self._made, "aclose", None)
        if close is not None:
            await close()

    async def _make(self) -> Model:
        spec, model, kwargs = self._spec, self._spec.model, dict(self._spec.kwargs)
        if not self._wants("model:create"):
            return await run_in_thread(make_model, spec, model, kwargs)
        event = await self._run(
            "model:create", llm_id=spec.id, provider=spec.provider, model=model, kwargs=kwargs, result=None
        )
        given = event.get("result")
        if given is None:
            return await run_in_thread(make_model, spec, str(event["model"]), dict(event["kwargs"]))
        return _model_from_hook(spec, given)

    def __repr__(self) -> str:
        return f"LazyModel({self._spec.id!r})"


def lazy_model(
    specs: tuple[ModelSpec, ...],
    run: EventRunner,
    wants: Callable[[str], bool],
    patience: RetryPolicy = RetryPolicy(),  # noqa: B008 - a frozen value
) -> Model:
    """Make a model from these, of which the first that answers counts; each is made at its first use and retried."""
    return FallbackModel(tuple(LazyModel(spec, run, wants) for spec in specs), patience)


def _model_from_hook(spec: ModelSpec, given: Any) -> Model:
    """Return a hook's own model, or the one that its function makes."""
    if not hasattr(given, "stream") and callable(given):
        try:
            given = given()
        except Exception as error:
            raise ModelError(f"the model {spec.id!r} could not be made by a hook: {error}", kind="missing") from error
    if not hasattr(given, "stream"):
        raise ModelError(
            f"a hook gave {type(given).__name__} for the model {spec.id!r}: it cannot stream", kind="missing"
        )
    model: Model = given
    return model
