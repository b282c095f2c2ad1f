"""The parts of Hermes that handlers import, as this gateway offers them: the shapes behind `modules.py`.

A hook that needs none of it does not pay for it: the shapes for the loader of plugins are loaded once, before workers
are forked, and the others when a handler imports them. Their requests go over the worker's wire, and so have the rights
of the hook.
"""
