"""How long a request is, in about so many tokens: no provider's own count is at hand before the call."""

from gateway.agent.model import ModelRequest

CHARACTERS = 4  # a token
CALL, SPEC = 40, 200  # characters of a tool call and of a tool's schema, roughly


def estimate_tokens(request: ModelRequest) -> int:
    characters = len(request.system)
    for entry in request.messages:
        characters += len(entry.content)
        characters += sum(CALL + sum(len(str(value)) for value in call.args.values()) for call in entry.tool_calls)
    characters += sum(len(spec.description) + SPEC for spec in request.tools)
    return characters // CHARACTERS
