import pytest
import torch
from vector_quantize_pytorch import FSQ

from lgf.latent.quantisation import quantised, to_codes, to_tokens


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


@pytest.mark.parametrize("levels", [4, 9])
def test_every_level_is_reached_and_tokens_invert_codes(levels):
    tokens = to_tokens(quantised(torch.linspace(-6, 6, 2001), levels), levels)
    assert sorted(tokens.unique().tolist()) == list(range(levels))
    every = torch.arange(levels)
    assert to_tokens(to_codes(every, levels), levels).tolist() == every.tolist()


def test_nine_levels_are_quarters():
    assert to_codes(torch.arange(9), 9).tolist() == [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1]
