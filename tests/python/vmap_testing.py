"""Helpers of the vmap tests: the same program with Lamella and with PyTorch."""

import numpy as np
import torch

import lamella


def arrays(*shapes, dtype="float64"):
    """Arrays of numbers from 0.1 to 1, the same each time."""
    draw = np.random.default_rng(7)
    return [(draw.random(shape) * 0.9 + 0.1).astype(dtype) for shape in shapes]


def close(found, wanted):
    """The same nest of tensors."""
    if isinstance(wanted, torch.Tensor):
        assert isinstance(found, lamella.Tensor)
        assert tuple(found.shape) == tuple(wanted.shape)
        assert str(found.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1]
        np.testing.assert_allclose(
            found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-12
        )
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            close(found[key], wanted[key])
    elif isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            close(a, b)
    else:
        assert found == wanted


def same(program, *given):
    """program(package, *tensors) gives the same with both packages."""
    ours = program(lamella, *(lamella.from_numpy(a.copy()) for a in given))
    close(ours, program(torch, *(torch.from_numpy(a.copy()) for a in given)))
