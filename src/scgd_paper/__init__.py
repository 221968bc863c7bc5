"""The paper's experiments: figures as rows of data, a runner, a table and a report."""

from scgd_paper.registry import EXPERIMENTS
from scgd_paper.rows import Experiment, Panel
from scgd_paper.runner import run_panel
from scgd_paper.variation import varied, varied_panel

__all__ = ["EXPERIMENTS", "Experiment", "Panel", "run_panel", "varied", "varied_panel"]
