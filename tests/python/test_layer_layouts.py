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


def test_joined_and_shuffled_channels_stay_last():
    torch = pytest.importorskip("torch")

    def layouts(p):
        functional = p.nn.functional
        plain = p.arange(48.0).reshape(2, 4, 2, 3)
        last = plain.contiguous(memory_format=p.channels_last)
        deep = p.arange(48.0).reshape(1, 4, 2, 2, 3).contiguous(memory_format=p.channels_last_3d)
        made = [p.stack([last, last], dim) for dim in range(-5, 5)]
        made += [p.stack([deep, deep], dim) for dim in range(6)]
        made += [p.stack(pair) for pair in ([last, plain], [plain, last], [last[0], last[0]])]
        made += [p.cat(pair, dim) for pair in ([last, plain], [plain, last]) for dim in range(4)]
        made += [p.cat([last[:, :1], plain[:, :1]], 1), p.cat([deep, deep], 1)]
        one = functional.pixel_shuffle(last, 2)
        made += [one, functional.pixel_unshuffle(one, 2), functional.channel_shuffle(last, 2)]
        made += [functional.pixel_shuffle(x, 2) for x in (plain, last[0], p.cat([last, last], 1))]
        return [(tuple(x.shape), x.stride(), x.flatten().tolist()) for x in made]

    assert layouts(lamella) == layouts(torch)
