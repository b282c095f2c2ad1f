"""How long hermes-agent's registry takes to find and import hook folders, in its own environment. Prints seconds."""

import contextlib
import io
import time

with contextlib.redirect_stdout(io.StringIO()):
    from gateway.hooks import HookRegistry  # hermes-agent's

    begun = time.perf_counter()
    HookRegistry().discover_and_load()
    took = time.perf_counter() - begun

print(took)
