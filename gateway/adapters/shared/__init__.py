"""The parts that all chat networks share.

- `folder` describes a network's folder, `adapter` its code and the values that it gets;
- `adapter_finder` and `adapter_loading` load adapters of other authors, `adapter_host` and `kit` serve them;
- in: `incoming` (a message's parts), `inbox` (into the journal, in order), `read_positions` (how far we have read);
- out: `send_rate`, `markdown_split`, `typing_indicator`; both ways: `files`.
"""
