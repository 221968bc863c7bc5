"""The paper's experiments: problems, methods and figures as rows, a runner, a table and a report."""
