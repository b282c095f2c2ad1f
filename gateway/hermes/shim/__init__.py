"""What handlers written for Hermes import of it, answered by this gateway: the facts behind `offered/`.

Nothing here is imported before a handler does, so that a hook which needs none of it pays for none of it. What it does
goes over the worker's wire, and so under the rights of the hook.
"""
