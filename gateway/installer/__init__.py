"""Hooks of other authors: fetched from their sources, shown, and installed once their owner agrees.

No code of them runs before that, and never here: only files are fetched and read.
"""
