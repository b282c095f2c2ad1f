"""The parts for gateways that share a journal: NATS, nodes, leases, shared files and folders."""
