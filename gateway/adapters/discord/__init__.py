"""Discord, on discord.py, by its gateway. All code that knows Discord is in this folder."""
