"""The journal on the streams of one NATS server, or of a cluster of them."""
