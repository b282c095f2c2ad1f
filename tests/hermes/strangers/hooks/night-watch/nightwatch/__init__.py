"""The watch: what it judges by, and what Hermes calls."""

from .policy import Policy

policy = Policy()


async def handle(event_type, context):
    verdict = policy.judge(context)
    return verdict
