"""Mistakes that programs catch: nn.functional raises the kinds of errors that PyTorch does."""

import pytest

import lamella
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
        (
            lambda: F.binary_cross_entropy(lamella.ones(2), lamella.ones(3)),
            ValueError,
            "binary_cross_entropy: expected 'target' to be of shape [2], got [3]",
        ),
        (
            lambda: F.binary_cross_entropy_with_logits(lamella.ones(2, 1), lamella.ones(2)),
            ValueError,
            "binary_cross_entropy_with_logits: expected 'target' to be of shape [2, 1], got [2]",
        ),
        (
            lambda: F.interpolate(lamella.ones(1, 1, 4, 4), size=(2, 2, 2)),
            ValueError,
            "interpolate: expected 'size' to have 2 entries, got 3",
        ),
        (
            lambda: F.affine_grid(lamella.ones(1, 2, 3), (1, 1, 4)),
            NotImplementedError,
            "affine_grid: expected 'size' to have 4 or 5 entries, got [1, 1, 4]",
        ),
        (
            lambda: F.instance_norm(lamella.ones(2, 3, 1)),
            ValueError,
            "instance_norm: expected more than one element in each channel of 'input', got "
            "[2, 3, 1]",
        ),
    ],
)
def test_kinds_of_errors_are_pytorchs(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind and str(error.value) == text
