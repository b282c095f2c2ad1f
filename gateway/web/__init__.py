"""The port: health checks, figures for Prometheus, webhooks, the API, and the operator's page.

It costs nothing until the first request: a small parser of our own answers, without any library. The port is closed to
all but this machine unless the configuration opens it. Then it requires keys, and TLS or a proxy in front that has it.

`port.py` has the connections, `probes.py` answers programs, `page.py` shows the page, `page_verbs.py` runs its actions,
and `shared_answers.py` shares an answer among many pages. `pages/` has the page's files, one for each room, which a
browser loads as they are.
"""
