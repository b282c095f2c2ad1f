"""The places of a gateway and its configuration.

`home` names its files, `guard` judges them, `settings` is the shape of the configuration, and `loading` fills it from
the command line, the environment, credentials, `.env` and `config.yaml`. Only this room reads the environment of the
process.
"""
