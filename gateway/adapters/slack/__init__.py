"""Slack, on slack-bolt, by Socket Mode. All that knows Slack is in this folder."""

from gateway.adapters.network import Ground
from gateway.adapters.slack.adapter import SlackAdapter
from gateway.config.platforms import Slack


def adapter(settings: Slack, ground: Ground) -> SlackAdapter:
    return SlackAdapter(settings, ground)
