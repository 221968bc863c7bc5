"""Mutants of kernels run without a compiler, which has no word for fetching ahead."""

import numba
import pytest


@pytest.fixture(autouse=True)
def no_prefetch_without_a_compiler(monkeypatch):
    if numba.config.DISABLE_JIT:
        monkeypatch.setattr("scgd_paper.linear.rows.prefetch", lambda dense, i, j: None)
