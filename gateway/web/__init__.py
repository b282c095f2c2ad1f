"""The port: whether the gateway is well, figures for Prometheus, the operator's page, and who may ask.

It costs nothing until the first request: what answers is a small parser of our own, and there is no other. It is closed
to all but this machine unless the configuration says otherwise, and then it wants TLS, or a proxy in front that has it,
and keys.

`port.py` has the connections, `probes.py` what programs ask, `page.py` what people see, `page_verbs.py` what they do,
`shared_answers.py` what many pages ask for at once; `pages/` are the page's files, one for each room, which a browser
loads as they are.
"""
