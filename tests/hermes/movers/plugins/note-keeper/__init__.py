"""A memory of its own, as far as it is offered, and a command."""

import logging

logger = logging.getLogger(__name__)


class Notes:
    name = "note-keeper"

    def __init__(self):
        self.held = []

    def prefetch(self, query, **_):
        return "\n".join(self.held)


NOTES = Notes()


def _takeover(raw_args: str = "") -> str:
    NOTES.held.append(raw_args)
    return f"taken over: {len(NOTES.held)} {raw_args}".strip()


def _patch_prompt():
    import run_agent

    run_agent.AIAgent.note_keeper = NOTES


def register(ctx):
    for kind in ("memory_provider", "command"):
        offer = getattr(ctx, f"register_{kind}", None)
        if offer is None:
            logger.info("no register_%s here", kind)
        elif kind == "command":
            offer("takeover", _takeover, description="Take the notes over")
        else:
            offer(NOTES)
    _patch_prompt()
