"""What runs in the nursery and in the workers. The daemon never imports it: it starts `boot.py` as a program.

In these processes `gateway` is not this package but what `boot.py` offers to hooks under that name.
"""
