"""Questions to people: approvals of tools, who may answer, where a question is shown, and how it ends."""
