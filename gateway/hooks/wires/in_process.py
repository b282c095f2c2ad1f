"""A handler that runs in the gateway's own process and loop, as the configuration says (`isolation: none`).

The handler saves the way to another process, and can disturb everything: if the handler blocks, the gateway blocks,
and a time limit only ends code that awaits. All else is as in a separate process.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.errors import HookError
from gateway.hooks.wires import codec
from gateway.hooks.wires.wire import Capability, Disconnection, HookAnswer, HookFailed
from gateway.logs.lines import bind_context
from gateway.worker.capabilities import HookCapabilities
from gateway.worker.context import HandlerCall, ShowFields, TurnMemory
from gateway.worker.loader import Handlers, load_handler
from gateway.worker.protocol import CallMeta, LoadedHandlers

_encode = msgspec.json.Encoder().encode
# The handler gets a copy: the values that it writes into a bag come back in its answer.
_decode_meta = msgspec.json.Decoder(CallMeta).decode


class InProcessWire(msgspec.Struct, eq=False, dict=True):
    """The wire to a handler in this process."""

    _name: str
    _handlers: Handlers
    _options: Mapping[str, Any]
    _serve: Capability
    _data: Path
    _show: ShowFields | None
    _memory: TurnMemory = msgspec.field(default_factory=TurnMemory)
    gone: Disconnection = msgspec.field(default_factory=Disconnection)

    @classmethod
    def open(
        cls,
        name: str,
        handler: Path,
        options: Mapping[str, Any],
        serve: Capability,
        data: Path,
        show: ShowFields | None = None,
    ) -> "InProcessWire":
        """Load the handler. Raises HookError if the import fails.

        `show` translates the fields of an event into another shape for the handler.
        """
        try:
            return cls(name, load_handler(name, handler), options, serve, data, show)
        except (Exception, SystemExit) as error:  # importing a hook
            raise HookError(f"{name} could not be imported: {type(error).__name__}: {error}") from error

    @property
    def loaded(self) -> LoadedHandlers:
        return self._handlers.describe()

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        params = msgspec.Raw(codec.encode_fields(fields))
        known = msgspec.json.decode(params)
        call = HandlerCall(name, known, _decode_meta(_encode(meta)), self._name, self._memory, self._show, params)
        # Here every request is to be awaited, also in a plain function.
        gateway = HookCapabilities(lambda verb, params: self._serve(verb, params, meta.event))
        call.equip(self._options, gateway, str(self._data))
        try:
            with anyio.fail_after(timeout), bind_context(hook=self._name):
                answer = await call.run(partial(self.begin, self._handlers.bind(meta.target, call.context)))
        except TimeoutError:
            raise HookFailed(f"{self._name} took more than {timeout:g} s", kind="timeout") from None
        except (Exception, SystemExit) as error:  # calling a hook
            raise HookFailed(f"{type(error).__name__}: {error}", kind="raised") from error
        return codec.answer_from(codec.decode_message(_encode({"jsonrpc": "2.0", "id": 0, **answer})), meta)

    def begin(self, handler: Callable[[], Any]) -> Any:
        """Return the answer of a plain function, or the coroutine of an async function."""
        return handler()

    async def stop(self, grace: float) -> None:  # noqa: ARG002 - it has no process that could be waited for
        self.gone.tell("it was stopped")
