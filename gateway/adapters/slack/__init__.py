"""Slack, on slack-bolt, by Socket Mode. All that knows Slack is in this folder."""

from gateway.adapters.shared import AdapterContext
from gateway.adapters.slack.adapter import SlackAdapter
from gateway.config.platform_settings import SlackSettings


def adapter(settings: SlackSettings, ground: AdapterContext) -> SlackAdapter:
    return SlackAdapter(settings, ground)
