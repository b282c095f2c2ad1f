"""Slack, on slack-bolt, by Socket Mode or by Slack's calls to the port. All code that knows Slack is in this folder."""
