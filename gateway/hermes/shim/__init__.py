"""What handlers written for Hermes import of it, answered by this gateway: the shapes behind `modules.py`.

A hook that needs none of it pays for none of it: what the loader of plugins uses is loaded once, before workers are
forked, and the rest when a handler imports it. What it does goes over the worker's wire, and so under the rights of
the hook.
"""
