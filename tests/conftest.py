"""Hypothesis without deadlines, and the same examples every time."""

from hypothesis import settings

settings.register_profile("scgd", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("scgd")
