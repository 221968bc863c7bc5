"""The books of a run: what was asked and answered, what was best, how it went, who may stop it."""
