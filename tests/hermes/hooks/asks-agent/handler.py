"""The tutorial that came instead of BOOT.md: an agent in a thread of its own."""

import threading

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")



def work():
    from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
    from run_agent import AIAgent

    agent = AIAgent(
        model=_resolve_gateway_model(),
        **_resolve_runtime_agent_kwargs(),
        platform="gateway",
        quiet_mode=True,
        skip_context_files=True,
        max_iterations=20,
    )
    result = agent.run_conversation("the boot task")
    note("asks-agent", result["final_response"], result["completed"], result.get("error"))


def handle(event_type, context):
    threading.Thread(target=work, name="boot", daemon=True).start()
