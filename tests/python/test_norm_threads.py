"""Normalisation layers give the same bits for any number of threads, forward and backward."""

import pytest
from operator_cases import lamella, make, same_bits, to_lamella, torch

F = lamella.nn.functional
LAYERS = {
    "layer_norm": ((700, 300), (300,), lambda x, w, b: F.layer_norm(x, (300,), w, b)),
    "rms_norm": ((700, 300), (300,), lambda x, w, b: F.rms_norm(x, (300,), w) + b),
    "group_norm": ((6, 12, 40, 40), (12,), lambda x, w, b: F.group_norm(x, 3, w, b)),
    "batch_norm": (
        (6, 12, 40, 40),
        (12,),
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    ),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_threads_give_the_same_bits(name, layout):
    shape, parameters, layer = LAYERS[name]
    x = make(*shape)
    if len(shape) == 4:
        x = x.to(memory_format=layout)
    given = [to_lamella(t) for t in (x, make(*parameters, seed=1), make(*parameters, seed=2))]
    grad = to_lamella(make(*shape, seed=3))

    def compute():
        leaves = [t.detach().requires_grad_(True) for t in given]
        out = layer(*leaves)
        results = [out, *lamella.autograd.grad(out, leaves, grad)]
        # What is added to the result of an RMS norm is summed by another operator.
        return results[: 3 if name == "rms_norm" else 4]

    same_bits(compute)
