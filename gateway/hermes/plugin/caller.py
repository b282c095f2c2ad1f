"""How a plugin's functions are called: with the arguments that they declare, and where they may block.

Hermes calls them in a thread where no loop runs, so a plain `def` may sleep, or say `asyncio.run(...)`: here it gets a
thread too. A coroutine function runs on the worker's one lasting loop. A thread cannot be ended: a call that is given
up is therefore not answered before its function is done, and when that lasts the whole process is ended and replaced.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

THREADS = 32


class PluginCaller:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "plugin")

    async def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Whatever it returns, awaited if need be."""
        if is_async(function):
            return await function(*args, **kwargs)
        context = contextvars.copy_context()
        work = partial(context.run, partial(function, *args, **kwargs))
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            result = await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise
        return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def pick_arguments(function: Callable[..., Any], kwargs: Mapping[str, Any], is_loose: bool = False) -> dict[str, Any]:
    """Those arguments that the function declares; all of them where it takes `**kwargs`.

    `is_loose`: what it needs and we do not have is None.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some things made in C do not say
        return dict(kwargs)
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    lacking = {one.name: None for one in named if one.default is one.empty and one.name not in kwargs}
    given = {**kwargs, **lacking} if is_loose else dict(kwargs)
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return given
    return {one.name: given[one.name] for one in named if one.name in given}
