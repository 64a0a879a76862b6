"""Results of layers have PyTorch's memory layouts, because later random draws may depend on
them."""

import pytest

import lamella

torch = pytest.importorskip("torch")

LAYOUTS = {
    "contiguous": lambda t, x: x,
    "channels_last": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "transposed": lambda t, x: x.transpose(2, 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_group_norm(layout, dtype):
    def strides(t):
        x = t.linspace(-1, 1, 120, dtype=getattr(t, dtype)).view(2, 4, 3, 5)
        x = LAYOUTS[layout](t, x).detach().requires_grad_(True)
        y = t.nn.functional.group_norm(x, 2)
        (gradient,) = t.autograd.grad(y, x, t.ones_like(y))
        return y.stride(), gradient.stride()

    assert strides(lamella) == strides(torch)


def test_the_meta_backend_says_the_same():
    x = lamella.empty(2, 4, 3, 5, device="meta").contiguous(memory_format=lamella.channels_last)
    assert lamella.nn.functional.group_norm(x, 2).stride() == (60, 1, 20, 4)


def test_padding_of_a_convolution_can_be_set_later():
    layer = lamella.nn.Conv2d(2, 3, 3, padding=1)
    layer.padding, layer.dilation = (2, 2), (2, 2)
    assert layer(lamella.ones(1, 2, 4, 4)).shape == (1, 3, 4, 4)
