"""Errors that programs catch: nn.functional raises the same exception types as PyTorch."""

import pytest

import lamella
from lamella import nn
from lamella.nn import functional as F


@pytest.mark.parametrize(
    "name, shape",
    [
        ("dropout", (2,)),
        ("alpha_dropout", (2,)),
        ("feature_alpha_dropout", (2, 3)),
        ("dropout1d", (2, 3, 4)),
        ("dropout2d", (2, 3, 4, 5)),
        ("dropout3d", (2, 3, 4, 5, 6)),
    ],
)
def test_probabilities_of_dropout(name, shape):
    for p in (-0.1, 1.5):
        for training in (True, False):
            with pytest.raises(ValueError) as error:
                getattr(F, name)(lamella.ones(shape), p, training)
            assert str(error.value) == f"{name}: expected 'p' to be in [0, 1], got {p}"


def test_dimensions_of_dropout():
    with pytest.raises(RuntimeError) as error:
        F.dropout1d(lamella.ones(2, 3, 4, 5))
    assert str(error.value) == "dropout1d: expected 'input' to have 2 or 3 dimensions, got 4"
    for function, shape in ((F.dropout2d, (2, 3, 4, 5, 6)), (F.dropout3d, (2, 3, 4, 5, 6, 7))):
        with pytest.warns(UserWarning, match="channels are the second"):
            out = function(lamella.ones(shape))
        # One decision for each channel.
        assert ((out == 0).flatten(2).all(-1) | (out == 2).flatten(2).all(-1)).all()


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: F.binary_cross_entropy(lamella.ones(2), lamella.ones(3)), ValueError,
         "binary_cross_entropy: expected 'target' to be of shape [2], got [3]"),
        (lambda: F.binary_cross_entropy_with_logits(lamella.ones(2, 1), lamella.ones(2)),
         ValueError,
         "binary_cross_entropy_with_logits: expected 'target' to be of shape [2, 1], got [2]"),
        (lambda: F.interpolate(lamella.ones(1, 1, 4, 4), size=(2, 2, 2)), ValueError,
         "interpolate: expected 'size' to have 2 entries, got 3"),
        (lambda: F.affine_grid(lamella.ones(1, 2, 3), (1, 1, 4)), NotImplementedError,
         "affine_grid: expected 'size' to have 4 or 5 entries, got [1, 1, 4]"),
        (lambda: F.instance_norm(lamella.ones(2, 3, 1)), ValueError,
         "instance_norm: expected more than one element in each channel of 'input', got "
         "[2, 3, 1]"),
    ],
)  # fmt: skip
def test_kinds_of_errors_are_pytorchs(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind and str(error.value) == text


def test_group_of_one_element():
    with pytest.raises(ValueError) as error:
        F.group_norm(lamella.ones(1, 4), 4)
    assert str(error.value) == (
        "group_norm: expected more than one element in a group of 'input', got [1, 4] and 4 groups"
    )


def test_sequential_inserts_within_its_places():
    net = nn.Sequential(nn.ReLU())
    with pytest.raises(IndexError) as error:
        net.insert(2, nn.ReLU())
    assert str(error.value) == "insert: expected 'index' to be in [-1, 1], got 2"
    assert len(net.insert(1, nn.Tanh())) == 2


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_shapes_that_differ_warn(name):
    with pytest.warns(UserWarning, match=rf"^{name}: 'target' of shape \[2\] is broadcast"):
        getattr(F, name)(lamella.ones(2, 1), lamella.ones(2))


def test_norm_by_name():
    p = nn.Parameter(lamella.ones(2))
    p.grad = lamella.tensor([3.0, -4.0])
    assert nn.utils.clip_grad_norm_([p], 2.0, norm_type="inf").item() == 4
