"""What calls of models used: counted with the journal's own appends, summed by day, held against budgets."""
