"""Pictures in words: another model describes them, for an agent whose own model sees no pictures.

The description joins the text of the entry for good, so that a picture is paid for once. It is recorded as a step of a
turn within the turn, so that a repeated turn does not ask again; the call is counted like every other. If a picture
cannot be described, the reason takes the place of the description.
"""

import hashlib
from contextlib import aclosing

import msgspec

from gateway.agent.model import Model, ModelRequest
from gateway.agent.model_call import call_model
from gateway.agent.turn_state import TurnState
from gateway.errors import BudgetRefusal, ModelError
from gateway.messages.steps import LlmStep
from gateway.messages.transcript import Entry

PROMPT = (
    "Describe the pictures for a person who cannot see them, one after the other: what is in them, where it is, "
    "and every text in them word by word. The text beside them says what they want to know. At most 300 words each, "
    "nothing else."
)
SAID = "[you are not shown what is pictured; {} says of it:]\n{}\n[end of what {} says]"
UNSAID = "[you are not shown what is pictured, and {} could not say it: {}]"


async def describe_pictures(state: TurnState, entry: Entry) -> Entry:
    """Return the entry with descriptions in place of its pictures, if the agent has a model for them."""
    model = state.agent.vision
    if model is None or not entry.parts:
        return entry
    digests = "".join(part.digest for part in entry.parts)
    turn_id = f"{state.ports.turn_id}/pictures-{hashlib.sha256(digests.encode()).hexdigest()[:12]}"
    known = next((one for one in state.ports.steps if isinstance(one, LlmStep) and one.turn_id == turn_id), None)
    try:
        said = known.entry.content if known else await _ask(state, model, entry, turn_id)
        words = SAID.format(model.name, said, model.name)
    except (ModelError, BudgetRefusal) as error:
        words = UNSAID.format(model.name, state.ports.redact(str(error)))
    if known:
        state.usage += known.usage
    return msgspec.structs.replace(entry, content=f"{entry.content}\n{words}".strip(), parts=())


async def _ask(state: TurnState, model: Model, entry: Entry, turn_id: str) -> str:
    request, before = ModelRequest((Entry("user", entry.content, parts=entry.parts),), PROMPT), state.usage
    async with aclosing(call_model(model, request, state.ports.usage, state.add_usage)) as chunks:
        said = "".join([chunk.text async for chunk in chunks]).strip()
    if not said:
        raise ModelError("it gave an empty answer", kind="response")
    step = LlmStep(turn_id=turn_id, hop=0, entry=Entry("assistant", said), usage=state.usage - before, stop="stop")
    await state.record(step)
    return said
