"""All verbs of the running gateway by name: the rows of all packages."""

from collections.abc import Mapping

from gateway.access.verbs import VERBS as ACCESS
from gateway.adapters.verbs import VERBS as ADAPTERS
from gateway.config.verbs import VERBS as CONFIG
from gateway.daemon.verbs import VERBS as DAEMON
from gateway.events.verbs import VERBS as EVENTS
from gateway.figures.verbs import VERBS as FIGURES
from gateway.hooks.verbs import VERBS as HOOKS
from gateway.jobs.verbs import VERBS as JOBS
from gateway.logs.verbs import VERBS as LOGS
from gateway.outbox.verbs import VERBS as OUTBOX
from gateway.people.verbs import VERBS as PEOPLE
from gateway.proposals.verbs import VERBS as PROPOSALS
from gateway.questions.verbs import VERBS as QUESTIONS
from gateway.records.verbs import VERBS as RECORDS
from gateway.sessions.verbs import VERBS as SESSIONS
from gateway.usage.verbs import VERBS as USAGE
from gateway.verbs import Verb
from gateway.web.verbs import VERBS as WEB

_PARTS = (*DAEMON, *CONFIG, *LOGS, *RECORDS, *EVENTS, *HOOKS, *ADAPTERS, *OUTBOX)
_PEOPLE = (*JOBS, *QUESTIONS, *PROPOSALS, *SESSIONS, *ACCESS, *PEOPLE, *USAGE, *FIGURES, *WEB)

VERBS: Mapping[str, Verb] = {verb.name: verb for verb in (*_PARTS, *_PEOPLE)}
