"""Where a gateway lives and how it is to behave: `home` names its files, `guard` judges them, `settings` is the shape
of the configuration, `loading` fills it from the command line, the environment, credentials, `.env` and `config.yaml`.

The environment of the process is read here alone.
"""
