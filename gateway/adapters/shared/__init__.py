"""What is alike in all chat networks.

- `folder` is what the folder of a network holds, `adapter` what its code is and is given;
- `adapter_finder` and `adapter_loading` are for adapters of others, `adapter_host` and `kit` what these are given;
- in: `incoming` (what a message is made of), `inbox` (into the journal, in order), `read_positions` (how far we are);
- out: `send_rate`, `markdown_split`, `typing_indicator`; both ways: `files`.
"""
