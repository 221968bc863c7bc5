"""The paper's experiments: figures as rows of data, a runner, a table and a report."""
