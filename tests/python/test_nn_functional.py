"""The functions of nn.functional that are written in Python, against PyTorch's."""

import pytest
from operator_cases import compare, make, to_lamella, torch

import lamella.nn.functional as ours

theirs = torch.nn.functional


def both(name, *args, tolerance=(1e-5, 1e-6), **kwargs):
    expected = getattr(theirs, name)(*args, **kwargs)
    got = getattr(ours, name)(
        *[to_lamella(a) for a in args], **{k: to_lamella(v) for k, v in kwargs.items()}
    )
    expected = list(expected) if isinstance(expected, tuple) else expected
    got = list(got) if isinstance(got, tuple) else got
    compare(got, expected, False, name, tolerance)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    x, y, p = make(4, 5), make(4, 5, seed=1), make(4, 5, low=0.1, high=0.9)
    target = make(4, dtype=torch.int64, low=0)
    sign = torch.where(y > 0, 1.0, -1.0)
    r = dict(reduction=reduction)
    both("cross_entropy", x, target, **r)
    both("cross_entropy", x, target, make(5, low=0.5), ignore_index=1, label_smoothing=0.1, **r)
    both("nll_loss", x, target, ignore_index=2, **r)
    both("mse_loss", x, y, **r)
    both("mse_loss", x, y, weight=p, **r)
    both("l1_loss", x, y, **r)
    both("smooth_l1_loss", x, y, beta=0.5, **r)
    both("smooth_l1_loss", x, y, beta=0.0, **r)
    both("huber_loss", x, y, delta=0.5, **r)
    both("soft_margin_loss", x, sign, **r)
    both("binary_cross_entropy", p, p.flip(0), **r)
    both("binary_cross_entropy_with_logits", x, p, pos_weight=make(5, low=0.5), **r)
    both("kl_div", x, p, **r)
    both("hinge_embedding_loss", x, sign, **r)
    both("cosine_embedding_loss", x, y, sign[:, 0], **r)
    both("margin_ranking_loss", x, y, sign, margin=0.2, **r)
    both("poisson_nll_loss", x, p, full=True, **r)
    both("gaussian_nll_loss", x, y, p, full=True, **r)
    both("gaussian_nll_loss", x, y, p[:, :1], **r)
    both("triplet_margin_loss", x, y, p, swap=True, **r)
    both("triplet_margin_with_distance_loss", x, y, p, swap=True, **r)
    both("multilabel_soft_margin_loss", x, (sign > 0).float(), **r)


def test_batchmean_and_old_flags():
    x, p = make(4, 5), make(4, 5, low=0.1, high=0.9)
    both("kl_div", x, p, reduction="batchmean")
    assert ours.mse_loss(to_lamella(x), to_lamella(p), reduce=False).shape == (4, 5)
    assert ours.mse_loss(to_lamella(x), to_lamella(p), size_average=False).dim() == 0
    with pytest.raises(ValueError) as caught:
        ours.mse_loss(to_lamella(x), to_lamella(p), reduction="max")
    assert str(caught.value) == ("expected 'reduction' to be 'none', 'mean' or 'sum', got 'max'")


def test_pooling():
    x = make(2, 3, 8, 8)
    for indices in (False, True):
        both("max_pool1d", x[0], 2, return_indices=indices)
        both("max_pool2d", x, 3, 2, 1, return_indices=indices)
        both("max_pool3d", make(1, 2, 4, 4, 4), 2, return_indices=indices)
        both("adaptive_max_pool1d", x[0], 3, return_indices=indices)
        both("adaptive_max_pool2d", x, (3, None), return_indices=indices)
        both("adaptive_max_pool3d", make(1, 2, 4, 4, 4), 2, return_indices=indices)
    both("avg_pool1d", x[0], 2)
    both("avg_pool2d", x, 2)
    both("avg_pool3d", make(1, 2, 4, 4, 4), 2)
    both("adaptive_avg_pool1d", x[0], 3)
    both("adaptive_avg_pool2d", x, (None, 3))
    both("adaptive_avg_pool2d", x, 1)
    both("adaptive_avg_pool3d", make(1, 2, 4, 4, 4), 3)


def test_convolution():
    x, w = make(2, 4, 7), make(6, 2, 3)
    both("conv1d", x, w, make(6), stride=2, padding=1, groups=2)
    both("conv1d", x, w, padding="same", groups=2)
    both("conv2d", make(1, 2, 5, 5), make(3, 2, 3, 3), tolerance=(1e-4, 1e-4))
    both("conv_transpose1d", x, make(4, 3, 3), stride=2, output_padding=1, tolerance=(1e-4, 1e-4))
    both("unfold", make(2, 3, 6, 6), 3, padding=1, stride=2)
    both("fold", make(2, 12, 9), (4, 4), 2)


def test_normalisation():
    x = make(4, 6, 5)
    mean, var = make(6, low=-1, high=1), make(6, low=0.5, high=2)
    both("batch_norm", x, mean, var, make(6), make(6, seed=1))
    both("batch_norm", x, mean.clone(), var.clone(), training=True, momentum=0.3)
    both("instance_norm", x, weight=make(6), bias=make(6, seed=1))
    both("group_norm", x, 3, make(6), make(6, seed=1))
    both("rms_norm", x, [5], make(5))
    both("local_response_norm", make(2, 6, 4, 4), 3)
    both("normalize", x, dim=2)
    with pytest.raises(ValueError) as caught:
        ours.batch_norm(to_lamella(make(1, 3)), None, None, training=True)
    assert str(caught.value) == (
        "batch_norm: expected more than 1 value for each channel in training, got an input of "
        "shape [1, 3]"
    )


def test_dropout_outside_of_training():
    x = make(2, 3, 4, 4)
    for name in ("dropout2d", "alpha_dropout", "feature_alpha_dropout"):
        both(name, x, training=False)
    both("dropout1d", x[0], training=False)
    both("dropout3d", make(2, 3, 4, 4, 4), training=False)


def test_interpolation():
    x = make(2, 3, 5, 6)
    for mode in ("nearest", "nearest-exact", "bilinear", "area"):
        both("interpolate", x, size=(7, 9), mode=mode)
        both("interpolate", x, scale_factor=1.7, mode=mode)
    both("interpolate", x, size=8, mode="bilinear", align_corners=True)
    both("interpolate", x, scale_factor=(1.6, 0.7), mode="bilinear", recompute_scale_factor=True)
    both("interpolate", make(2, 3, 5), size=8, mode="linear")
    both("interpolate", make(1, 2, 3, 4, 5), scale_factor=2, mode="trilinear")
    both("pixel_shuffle", make(2, 8, 3, 3), 2)
    with pytest.raises(ValueError, match="expected no 'recompute_scale_factor' with 'size'"):
        ours.interpolate(to_lamella(x), size=8, recompute_scale_factor=True)
    both("pad", x, (1, 1, 2, 0), mode="reflect")
    both("bilinear", make(4, 3), make(4, 5), make(2, 3, 5), make(2))
