"""``method="auto"``: measure the function first, then choose the parts that fit it.

A run is a sequence of stages (each asks for evaluations and learns from them) and legs (stretches of
the optimizer's ordinary steps under one recipe); :mod:`scgd.auto.plan` decides what follows what.
"""
