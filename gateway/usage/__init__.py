"""The usage of models: counted with the journal's own appends, summed by day, held against budgets."""
