"""A peer arena: problems, methods, budgets and seeds, run alike and reported honestly."""
