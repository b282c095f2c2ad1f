"""The chat networks: which there are, each in a module of its own that is imported only where it is switched on.

A module in the table has one function, `adapter(settings, ground)`, which makes an `Adapter` (see
`gateway.adapters.shared`) from the network's settings and from what the gateway gives to every network.
"""

NETWORKS = {
    "telegram": "gateway.adapters.telegram",
    "discord": "gateway.adapters.discord",
    "slack": "gateway.adapters.slack",
}
