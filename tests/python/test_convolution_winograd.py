"""Convolutions by Winograd's products: kernels of three by three over many channels."""

import numpy as np
import pytest
import torch
from operator_cases import same_bits

import lamella

# Batch, channels, channels of the result, height, width, padding.
CASES = [
    (1, 32, 32, 14, 14, 1),
    (3, 16, 48, 13, 11, 0),
    (2, 48, 32, 9, 12, 2),
    (1, 64, 256, 15, 14, 1),
    (5, 32, 64, 7, 1, 1),
    (40, 16, 32, 3, 3, 0),
]


def _operands(case):
    n, given, made, height, width, padding = case
    random = np.random.default_rng(0)
    x = random.standard_normal((n, given, height, width), dtype=np.float32)
    w = random.standard_normal((made, given, 3, 3), dtype=np.float32) / np.float32(given**0.5 * 3)
    return x, w, random.standard_normal(made, dtype=np.float32), padding


def _last(array):
    return lamella.tensor(array).contiguous(memory_format=lamella.channels_last)


LAYOUTS = [lamella.tensor, _last]


def _convolution(x, w, b, padding):
    return lamella.nn.functional.conv2d(x, w, b, padding=padding)


@pytest.mark.parametrize("laid", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case, laid):
    x, w, b, padding = _operands(case)
    exact = torch.nn.functional.conv2d(
        *(torch.tensor(a, dtype=torch.float64) for a in (x, w, b)), padding=padding
    ).numpy()
    weight, bias = lamella.tensor(w), lamella.tensor(b)
    # The third call finds the transformed weights.
    got = [_convolution(laid(x), weight, bias, padding).numpy() for _ in range(3)]
    np.testing.assert_allclose(got[0], exact, rtol=2e-6, atol=8e-6)
    for again in got[1:]:
        np.testing.assert_array_equal(again, got[0])


@pytest.mark.parametrize("laid", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients(case, laid):
    x, w, b, padding = _operands(case)
    theirs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (x, w, b)]
    made = torch.nn.functional.conv2d(*theirs, padding=padding)
    tangent = np.random.default_rng(1).standard_normal(made.shape, dtype=np.float32)
    made.backward(torch.tensor(tangent, dtype=torch.float64))
    ours = [laid(x).requires_grad_(), *(lamella.tensor(a).requires_grad_() for a in (w, b))]
    _convolution(*ours, padding).backward(laid(tangent))
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_change_no_bit(case):
    x, w, b, padding = _operands(case)
    operands = [_last(x), lamella.tensor(w), lamella.tensor(b)]
    same_bits(lambda: _convolution(*operands, padding))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite(special):
    x, w, b, padding = _operands(CASES[0])
    x[0, 3, 5, 6] = special
    expected = torch.nn.functional.conv2d(*map(torch.tensor, (x, w, b)), padding=padding).numpy()
    got = _convolution(_last(x), lamella.tensor(w), lamella.tensor(b), padding).numpy()
    # What a huge element is multiplied with is exact to the largest weight of the kernel.
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_weights_that_share_memory_have_forms_of_their_own():
    x, w, _, padding = _operands(CASES[0])
    whole = lamella.tensor(w)
    one = whole[:1].expand(32, 32, 3, 3)
    turned = whole.transpose(2, 3)
    for _ in range(3):
        for weight in (whole, one, turned):
            exact = torch.nn.functional.conv2d(
                torch.tensor(x), torch.tensor(weight.contiguous().numpy()), padding=padding
            ).numpy()
            got = _convolution(_last(x), weight, None, padding).numpy()
            np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)
    whole.mul_(2)
    doubled = _convolution(_last(x), whole, None, padding).numpy()
    exact = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(2 * w), padding=padding)
    np.testing.assert_allclose(doubled, exact.numpy(), rtol=1e-5, atol=1e-5)


def test_compiled():
    x, w, b, padding = _operands(CASES[0])
    operands = [lamella.tensor(a) for a in (x, w, b)]

    def two(x, w, b):
        y = lamella.relu(_convolution(x, w, b, padding))
        return _convolution(y, w, b, padding)

    compiled = lamella.compile(two)
    expected = two(*operands).numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(*operands).numpy(), expected, rtol=1e-5, atol=1e-5)
