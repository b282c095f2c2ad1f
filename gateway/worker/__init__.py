"""The code of the fork server and the workers: `boot.py` is started as a program and imports the rest.

In these processes `gateway` is not this package but the part that `boot.py` offers to hooks under that name: nothing
here may import more of the gateway. (The daemon itself uses only the part that runs a hook in its own process.)
"""
