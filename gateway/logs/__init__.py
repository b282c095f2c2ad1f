"""The gateway's log: `text` makes foreign text harmless, `redaction` takes secrets out, `lines` says how a line looks
and in which session, turn and hook it was written, `pipeline` carries lines out of the caller's way, to the `sinks`.
"""
