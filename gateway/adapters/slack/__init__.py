"""Slack, on slack-bolt, by Socket Mode. All that knows Slack is in this folder."""

from gateway.adapters.shared import AdapterContext
from gateway.adapters.slack.adapter import SlackAdapter
from gateway.config.platforms import Slack


def adapter(settings: Slack, ground: AdapterContext) -> SlackAdapter:
    return SlackAdapter(settings, ground)
