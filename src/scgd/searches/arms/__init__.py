"""Arms: pieces of a search written as generators that yield points and are sent values.

An arm yields a point, or a matrix with one point per row, and is sent the value or values; a value
that was lost is infinite. Arms work in units of the problem's scale and know nothing of budgets,
bounds and books: :class:`~scgd.searches.told.Told` makes a search of them.
"""
