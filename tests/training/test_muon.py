"""Muon beside the exact orthogonal factor and torch's Adam."""

import pytest
import torch
from torch import nn

from lgf.training.muon import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(40, 40), (16, 90), (90, 16)])
def test_all_directions_get_about_the_same_step(shape):
    torch.manual_seed(0)
    left, _, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    sizes = torch.logspace(0, -2, min(shape))  # the smallest direction has a hundredth of the largest
    found = orthogonalised(left @ torch.diag(sizes) @ right)
    along = left.T @ found @ right.T
    assert (along.diag() > 0.6).all()
    assert (along.diag() < 1.3).all()
    assert (along - along.diag().diag()).abs().max() < 1e-4


def test_a_step_changes_the_entries_of_a_matrix_by_the_rate():
    torch.manual_seed(0)
    for shape in [(60, 60), (20, 100), (12, 3, 9)]:
        parameter = nn.Parameter(torch.zeros(shape))
        parameter.grad = torch.randn(shape)
        Muon([parameter], lr=0.01).step()
        assert 0.006 < parameter.detach().square().mean().sqrt() < 0.013


def test_vectors_move_as_by_adam():
    torch.manual_seed(0)
    slopes = torch.randn(30, 7)
    ours, theirs = (nn.Parameter(torch.ones(7)) for _ in range(2))
    pairs = [
        (ours, Muon([ours], lr=0.1, weight_decay=0.02)),
        (theirs, torch.optim.AdamW([theirs], 0.1, weight_decay=0.02)),
    ]
    for slope in slopes:
        for parameter, optimiser in pairs:
            parameter.grad = slope.clone()
            optimiser.step()
    torch.testing.assert_close(ours, theirs)


def test_a_parameter_without_a_gradient_stays():
    parameter = nn.Parameter(torch.ones(3, 3))
    Muon([parameter], lr=0.1, weight_decay=0.5).step()
    assert (parameter == 1).all()
