"""Telegram, on python-telegram-bot's `Bot`, read by long polling. All that knows Telegram is in this folder."""
