"""Hypothesis without deadlines, and the same examples every time; Ctrl-C means what it always does."""

import signal

from hypothesis import settings

settings.register_profile("scgd", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("scgd")

# A shell starts what runs in the background with SIGINT ignored: tests of interrupts would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
