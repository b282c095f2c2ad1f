"""Discord, on discord.py, by its gateway. All that knows Discord is in this folder."""
