"""Reading what others wrote, in a process that may be killed: pages, long JSON, and patterns that are not ours."""
