"""The account of a run: what was asked and answered, what was best, how it went, its end."""
