"""Class-based, with the agent in the loop's own pool: what every second such hook does."""

import asyncio
import json
import os
from pathlib import Path

from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
from run_agent import AIAgent

LOG = Path(os.environ["HERMES_HOME"]) / "second-opinion.jsonl"


class SecondOpinion:
    def __init__(self):
        self.turns = 0

    async def __call__(self, event_type, context):
        self.turns += event_type == "agent:start"
        self.write("event", event_type, context["message"], self.turns)
        if event_type == "agent:end":
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(None, self.ask, context["response"])
            self.write("opinion", result)

    def ask(self, response):
        agent = AIAgent(
            model=_resolve_gateway_model(),
            **_resolve_runtime_agent_kwargs(),
            quiet_mode=True,
            skip_context_files=True,
            skip_memory=True,
            max_iterations=2,
        )
        return agent.run_conversation("second opinion, please")["final_response"][:20]

    def write(self, *what):
        with LOG.open("a") as file:
            file.write(json.dumps(what) + "\n")


handle = SecondOpinion()
