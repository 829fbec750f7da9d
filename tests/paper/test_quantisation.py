import numpy as np
import pytest
import torch
from vector_quantize_pytorch import FSQ

from lgf.paper.autoencoder.quantisation import to_codes, to_tokens
from lgf.paper.training.quantisation import quantised


@pytest.mark.parametrize("levels", [4, 5, 8, 9])
def test_codes_and_gradient_are_those_of_the_reference(levels):
    z = torch.linspace(-4, 4, 401, requires_grad=True)
    codes = quantised(z, levels)
    codes.sum().backward()
    twin = z.detach().clone()[None, :, None].requires_grad_()
    theirs = FSQ([levels])(twin)[0]
    theirs.sum().backward()
    torch.testing.assert_close(codes, theirs[0, :, 0])
    torch.testing.assert_close(z.grad, twin.grad[0, :, 0])
    without_torch = to_codes(to_tokens(z.detach().numpy(), levels), levels)
    np.testing.assert_allclose(without_torch, codes.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("levels", [4, 9])
def test_every_level_is_reached(levels):
    tokens = to_tokens(np.linspace(-6, 6, 2001, dtype=np.float32), levels)
    assert sorted(set(tokens.tolist())) == list(range(levels))


def test_nine_levels_are_quarters():
    assert to_codes(np.arange(9), 9).tolist() == [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1]
