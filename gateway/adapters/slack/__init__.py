"""Slack, on slack-bolt, by Socket Mode. All that knows Slack is in this folder."""
