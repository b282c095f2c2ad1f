"""Run by hand: sends a release away."""

import hermes_state
import no_such_uploader
