"""Strategies: generators that yield points and are sent their values.

====================  ===============================================================
to read first         :mod:`asks` (what may be yielded), :mod:`auto` (the default)
what f is like        ``noise_test``, ``precision``, ``length_scale``, ``separability``,
                      ``gradient_agreement``, ``gradient_check``
deterministic         ``portfolio`` of ``bfgs``, ``cma_es``, ``line_search``; ``restarts``,
                      ``stopping``
noisy                 ``noisy``: ``trust_region_radius``, ``spsa``, ``regression``,
                      ``noisy_population``, ``joint_directions``, ``screening``, ``low_noise``
on samples            ``common_random_numbers``
whole numbers         ``gaussian_process``, ``mutation``
around any of them    ``incumbent`` (the last re-evaluation), ``verification`` (outliers)
====================  ===============================================================

Some numbers need no name. 1e-300 and 1e-290 keep a division finite. Multiples of ``EPS`` and parts
of 1e-9 to 1e-15 are what rounding may do to a value or to a length. ``2**30`` and ``2**62`` mean
without end. A number of evaluations that is clipped between two others is a share of the budget,
neither too few to tell anything nor more than the answer is worth.
"""
