"""The daemon: where all parts meet, one gateway a home, and the order of start and stop."""
