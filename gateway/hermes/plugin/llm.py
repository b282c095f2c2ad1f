"""The object `ctx.llm`: a plugin uses the gateway's own model, without a key of its own."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

_REFUSED_OPTIONS = ("provider", "model", "agent_id", "profile")


class LlmUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class LlmCompletion(msgspec.Struct):
    """The answer of the model; `parsed` and `content_type` belong to `complete_structured`."""

    text: str
    provider: str
    model: str
    agent_id: str = "default"
    usage: LlmUsage = msgspec.field(default_factory=LlmUsage)
    parsed: Any = None
    content_type: str = "text"
    audit: dict[str, Any] = msgspec.field(default_factory=dict)


class PluginLlm:
    """The model for a plugin.

    The gateway decides which model answers: a request for another one is refused.
    """

    def __init__(self, ask: Callable[[dict[str, Any]], Any]) -> None:
        self._ask = ask

    def complete(self, messages: Sequence[Mapping[str, Any]], **more: Any) -> LlmCompletion:
        """Return the model's answer to `messages` in OpenAI's form.

        Further options are `temperature`, `max_tokens`, `timeout` and `purpose`.
        """
        if refused := next((name for name in _REFUSED_OPTIONS if more.get(name)), None):
            raise PermissionError(
                f"a plugin cannot choose the {refused}: the gateway's own model answers; leave it out"
            )
        given = {name: more[name] for name in ("temperature", "max_tokens", "timeout") if more.get(name) is not None}
        said = self._ask({"messages": [dict(one) for one in messages], **given})
        used = said.get("usage") or {}
        taken, given_back = used.get("input_tokens", 0), used.get("output_tokens", 0)
        tokens = LlmUsage(taken, given_back, taken + given_back, cost_usd=used.get("cost"))
        audit = {"purpose": more.get("purpose") or ""}
        return LlmCompletion(said["text"], said.get("provider", ""), said.get("model", ""), usage=tokens, audit=audit)

    def complete_structured(self, *, instructions: str, input: Sequence[Any], **more: Any) -> LlmCompletion:  # noqa: A002 - Hermes's word
        """Return the answer as JSON, by `json_schema` if given; `parsed` is None if it is not JSON."""
        schema, system = more.pop("json_schema", None), more.pop("system_prompt", None)
        wants = bool(more.pop("json_mode", False)) or schema is not None
        asked = [instructions, *(["Answer with one JSON value and nothing else."] if wants else [])]
        if schema is not None:
            asked.append(f"It must fit this JSON schema: {json.dumps(schema)}")
        asked += [_text_of(block) for block in input]
        messages = [{"role": "system", "content": system}] if system else []
        done = self.complete([*messages, {"role": "user", "content": "\n\n".join(asked)}], **more)
        if wants:
            done.parsed = _parse_json(done.text)
            done.content_type = "json" if done.parsed is not None else "text"
        return done

    async def acomplete(self, messages: Sequence[Mapping[str, Any]], **more: Any) -> LlmCompletion:
        return await asyncio.to_thread(self.complete, messages, **more)

    async def acomplete_structured(self, *, instructions: str, input: Sequence[Any], **more: Any) -> LlmCompletion:  # noqa: A002 - Hermes's word
        return await asyncio.to_thread(self.complete_structured, instructions=instructions, input=input, **more)


def _text_of(block: Any) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    if not isinstance(text, str):
        raise TypeError("the model takes only texts here, no images")
    return text


def _parse_json(text: str) -> Any:
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].rpartition("```")[0]
    try:
        return json.loads(bare)
    except ValueError:
        return None
