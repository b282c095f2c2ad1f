"""A gateway that has seen something: hooks of every state, conversations, dead letters; what a page has to show.

Whoever needs more in the home adds it before `start_busy`, and says more afterwards.
"""

import time

from anyio.from_thread import start_blocking_portal

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks.durable.dead_letters import dead_letter_subject_of
from gateway.records import records
from gateway.testing import GatewayProcess
from tests.browser.jobs_of_a_day import write_jobs

PASS = "def handle(event_type, context):\n    pass\n"
PRINTS = "def handle(event_type, context):\n    print(event_type)\n"
SLEEPS = "import time\n\n\ndef handle(event_type, context):\n    time.sleep({seconds})\n"
RAISES = "def handle(event_type, context):\n    raise ValueError('the <b>server</b> is down')\n"
ACTING = "<script>document.title = 'taken'</script>"  # none of this may act, or turn what stands behind it
ODD = f"{ACTING} \u202ereversed\u202c \u001b[31mred"
FAILS = f"""
def handle(event_type, context):
    if "fail" in context["message"]:
        raise ValueError({ODD!r})
"""
REFUSES = """
from gateway.hooks import Deny


def handle(event_type, context):
    if context["tool"] == "time":
        raise Deny("the clock is private here")
"""
PATCHES = "import model_tools\n\n\ndef register(ctx):\n    model_tools.handle_function_call = print\n"

HOOKS = {
    "audit": (
        """description: Notes the end of each turn
events: [agent:end]
webhook: {secret_env: AUDIT_SECRET, verify: token}
""",
        PRINTS,
    ),
    "gate": ("description: Refuses some tools\nintercepts: [tool:before]\non_error: deny\n", REFUSES),
    "quiet": ("description: Switched off\nevents: [agent:end]\n", PASS),
    "syntax": ("description: Cannot be read\nevents: [agent:end]\n", "def handle(:\n"),
    "moody": ("description: Fails now and then\nevents: [agent:end]\n", FAILS),
    "tripping": ("description: Fails always\nevents: [agent:start, 'llm:*', agent:end]\n", RAISES),
    "slow": ("description: Takes its time\nevents: [agent:start]\n", SLEEPS.format(seconds=0.3)),
    "behind": ("description: Does not keep up\nevents: ['agent:*']\ntimeout: 120s\n", SLEEPS.format(seconds=100)),
    "owes": ("description: Is told later\nevents: [session:start]\ndelivery: durable\n", RAISES),
    "courier": ("description: Has dead letters\nevents: [session:end]\ndelivery: durable\n", PASS),
    "lacking": ("description: Wants a package\nevents: [agent:end]\nrequires: {python: [no-such-package-77]}\n", PASS),
    "distant": ("description: Behind a URL\nevents: [agent:end]\nurl: http://127.0.0.1:1/told\n", ""),
    "nightly": ("description: At four\nevents: [agent:end]\nschedule: '0 4 * * *'\n", PASS),
    "shut-in": (
        "description: Restricted\nevents: [agent:end]\nreads: [/usr/share]\nwrites: [/tmp/none]\nnet: false\n",
        PASS,
    ),
    "odd": (f"description: {ODD.replace(chr(27), '')!r}\nevents: [agent:end]\n", PASS),
}
SHELL_HOOK, PLUGIN = "shell-post_tool_call-true", "wraps"
STATES = {
    "audit": "loaded",
    "quiet": "disabled",
    "syntax": "broken",
    "tripping": "tripped",
    "lacking": "missing",
    PLUGIN: "without effect",
    SHELL_HOOK: "pending",
}
OF_HERMES = """
plugins: {enabled: [wraps]}
hooks:
  post_tool_call:
    - command: /bin/true
"""
SAID = ("good morning", "what time is it?", "please fail", "a long story", f"show {ACTING}")
TURNS = (
    {"user": "good morning", "text": "Good morning! What can I do for you?"},
    {"user": "what time", "answers": [{"tool_calls": [{"name": "time", "args": {}}]}, {"text": "Nobody tells me."}]},
    {"user": "please fail", "text": "That did not work."},
    {"user": "a long story", "text": "Once upon a time there was a gateway. " * 60},
    {"user": "show", "text": f"Here it is: {ODD}"},
)
LETTERS = 3
BUDGETS = "budgets: {each_person: {day: {tokens: 1000000}, month: {money: 5}}}\n"
PROGRAM = "dashboard"


def start_busy(gateway: GatewayProcess, settings: str = "") -> None:
    """Until each hook is in its state, and everything was said."""
    gateway.script(*TURNS, *[{"user": "", "text": "Hello."}] * 200, settings=BUDGETS + settings)
    gateway.environ["AUDIT_SECRET"] = "nobody guesses this one: 0123456789"
    for name, (manifest, handler) in HOOKS.items():
        gateway.add_hook(name, {"HOOK.yaml": manifest} | ({"handler.py": handler} if handler else {}))
    plugin = gateway.home.root / "plugins" / PLUGIN
    plugin.mkdir(parents=True)
    (plugin / "plugin.yaml").write_text(f"name: {PLUGIN}\n")
    (plugin / "__init__.py").write_text(PATCHES)
    gateway.home.hermes_config.write_text(OF_HERMES)
    with start_blocking_portal() as portal:  # a thread of its own: a browser's loop may run in this one
        portal.call(bury_letters, gateway)
        portal.call(plan_jobs, gateway)
    gateway.start()
    gateway.call("hooks.disable", {"name": "quiet"})
    gateway.call("keys.create", {"name": PROGRAM, "role": "operator"})
    for number, text in enumerate(SAID):
        gateway.say(text, session=f"talk{number}")
    gateway.until(lambda: STATES.items() <= states_of(gateway).items())


def states_of(gateway: GatewayProcess) -> dict[str, str]:
    return {hook["name"].removeprefix("plugin:"): hook["state"] for hook in gateway.call("hooks.list")["hooks"]}


async def plan_jobs(gateway: GatewayProcess) -> None:
    async with await open_sqlite(gateway.home.journal) as engine:
        await write_jobs(engine, time.time())


async def bury_letters(gateway: GatewayProcess) -> None:
    """Leave events that a hook could not receive, in a gateway that ran before."""
    async with await open_sqlite(gateway.home.journal) as engine:
        for number in range(1, LETTERS + 1):
            fields = {"id": f"e{number}", "session_id": f"s{number}", "platform": "terminal", "reason": ODD}
            emitted = records.encode(records.EmittedEvent(name="session:end", fields=fields))
            dead = records.DeadLetterRecord(
                what="hook:courier", reason=f"gave up: {ODD}", attempts=5, subject="x", seq=number, data=emitted
            )
            await engine.append(NewRecord(dead_letter_subject_of("courier", number), records.encode(dead)))
