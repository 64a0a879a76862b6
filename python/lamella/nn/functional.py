"""Operators for neural networks: those declared for this module, and, under PyTorch's names and
argument orders, those that it shares with the package."""

import lamella
from lamella import _C

globals().update(_C._functions("nn"))

from lamella.nn.functional_activations import (  # noqa: E402, F401
    celu,
    elu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    relu6,
    rrelu,
    selu,
    silu,
    softmax,
    softmin,
    softsign,
    tanhshrink,
    threshold,
)
from lamella.nn.functional_layers import (  # noqa: E402, F401
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    alpha_dropout,
    batch_norm,
    bilinear,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    fold,
    group_norm,
    instance_norm,
    interpolate,
    local_response_norm,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    rms_norm,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from lamella.nn.functional_losses import (  # noqa: E402, F401
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)


def __getattr__(name):
    # relu, tanh, softplus, ...: the same function as in the package.
    found = None if name.startswith("_") else getattr(lamella, name, None)
    if found is None or not callable(found):
        raise AttributeError(f"module 'lamella.nn.functional' has no attribute '{name}'")
    return found


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """Rows of `weight` chosen by the indices in `input`."""
    if max_norm is not None:
        raise NotImplementedError("embedding: expected 'max_norm' to be None")
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    return lamella.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalises over the last dimensions, `normalized_shape`."""
    return lamella.layer_norm(input, normalized_shape, weight, bias, eps)


def dropout(input, p=0.5, training=True, inplace=False):
    """Sets elements to zero with probability `p` and scales the others, in training."""
    op = lamella.dropout_ if inplace else lamella.dropout
    return op(input, p, training)


def relu(input, inplace=False):
    """max(x, 0)."""
    return lamella.relu_(input) if inplace else lamella.relu(input)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divides by the p-norm along `dim`."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return lamella.div(input, length) if out is None else lamella.div(input, length, out=out)
