"""Telegram, on python-telegram-bot's `Bot`, by polls or calls. All code that knows Telegram is in this folder."""
