"""Hooks that others wrote: fetched from where they are offered, shown, and installed when their owner says yes.

Nothing of them runs before that, here least of all: what is fetched is files, which are read.
"""
