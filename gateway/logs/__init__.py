"""What the gateway says about itself: `text` makes foreign text harmless, `redaction` takes secrets out, `context` says
in which session, turn and hook a line was written, `lines` is how a line looks, `service` carries it out of the way.
"""
