"""The journal on the streams of a NATS server, or of several that keep it together."""
