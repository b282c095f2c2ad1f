"""Prints what each model has cost."""

import os
import sqlite3

db = sqlite3.connect(os.path.join(os.environ["HERMES_HOME"], "state.db"))
sums = "SELECT model, SUM(input_tokens + output_tokens), ROUND(SUM(COALESCE(estimated_cost_usd, 0)), 4), COUNT(*)"
for model, tokens, cost, sessions in db.execute(f"{sums} FROM sessions WHERE source = 'terminal' GROUP BY model"):
    print(f"{model}: {tokens} tokens, ${cost}, {sessions} sessions")
