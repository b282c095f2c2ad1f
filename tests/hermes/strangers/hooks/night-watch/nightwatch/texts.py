"""What people are told."""

REFUSAL = "not at night"
