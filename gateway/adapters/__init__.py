"""The chat networks: one row each, with the folder that holds all that is to be known of it.

Names are text, and a folder's modules are loaded when they are wanted: `settings` (what a person sets for it, and facts
that need no library), `setup` (the questions of the wizard), `check` (are the tokens good?) and `adapter` (the work).
`gateway.adapters.shared` holds what is alike in all of them.
"""

ADAPTERS = {
    "telegram": "gateway.adapters.telegram",
    "discord": "gateway.adapters.discord",
    "slack": "gateway.adapters.slack",
}
