"""What runs in the fork server and in the workers: `boot.py` is started as a program, and the rest comes in through it.

There `gateway` is not this package but what `boot.py` offers to hooks under that name: of the gateway, nothing here may
import more than that. (Of all this the daemon itself uses only what runs a handler in its own process.)
"""
