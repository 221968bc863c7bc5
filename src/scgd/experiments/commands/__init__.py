"""The commands of the experiments: list, run, report, data."""
