"""The documents' Python code: the same calls with the same results."""

import lamella


def test_contiguous_in_channels_last():
    batch, channels, height, width = 1, 64, 5, 4
    x = lamella.rand(batch, channels, height, width)
    y = x.contiguous(memory_format=lamella.channels_last)
    assert tuple(y.shape) == (1, 64, 5, 4)
    assert y.stride() == (1280, 1, 256, 64)
    assert not y.is_contiguous()
    assert y.is_contiguous(memory_format=lamella.channels_last)
    assert y[0, 3, 2, 1].item() == x[0, 3, 2, 1].item()
    assert str(y.shape) == "lamella.Size([1, 64, 5, 4])"


def test_a_contiguous_tensor_is_returned_itself():
    x = lamella.empty(2, 3)
    assert x.contiguous() is x
