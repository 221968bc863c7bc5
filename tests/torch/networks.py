"""A small network and a batch that the tests of zeroth order share."""

import itertools

import torch
from torch import nn


def perceptron(dtype=torch.float64, widths=(6, 5, 4, 3), activation=nn.Tanh):
    torch.manual_seed(0)
    layers = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [nn.Linear(n_in, n_out), activation()]
    return nn.Sequential(*layers[:-1]).to(dtype)


def batch(dtype=torch.float64, n_in=6, n_rows=9, n_classes=3):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n_rows, n_in, generator=generator, dtype=torch.float64).to(dtype)
    return x, torch.randint(0, n_classes, (n_rows,), generator=generator)
