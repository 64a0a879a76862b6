"""Pooling, normalisation, dropout of channels, folding and interpolation of
lamella.nn.functional."""

import lamella
from lamella import _C

_nn = _C._functions("nn")


# ---- Pooling ----


def _listed(value):
    return [value] if isinstance(value, int) else value


def _max_pool(name, with_indices, values_alone):
    """The function that gives values and places, and the one where `return_indices` asks for the
    places."""

    def both(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        """The largest element of each window and its place, whatever `return_indices` is."""
        stride = [] if stride is None else stride
        return tuple(with_indices(input, kernel_size, stride, padding, dilation, ceil_mode))

    def pool(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        """The largest element of each window, with `return_indices` also its place."""
        if return_indices:
            return both(input, kernel_size, stride, padding, dilation, ceil_mode)
        stride = [] if stride is None else stride
        return values_alone(input, kernel_size, stride, padding, dilation, ceil_mode)

    both.__name__ = both.__qualname__ = f"{name}_with_indices"
    pool.__name__ = pool.__qualname__ = name
    return both, pool


max_pool1d_with_indices, max_pool1d = _max_pool(
    "max_pool1d", lamella.max_pool1d_with_indices, lamella.max_pool1d
)
max_pool2d_with_indices, max_pool2d = _max_pool(
    "max_pool2d", _nn["max_pool2d_with_indices"], lamella.max_pool2d
)
max_pool3d_with_indices, max_pool3d = _max_pool(
    "max_pool3d", _nn["max_pool3d_with_indices"], lamella.max_pool3d
)


def _adaptive_sizes(input, output_size, count):
    """One number stands for all dimensions, None for the input's size."""
    one = output_size is None or isinstance(output_size, int)
    sizes = [output_size] * count if one else output_size
    own = input.shape[-count:]
    return [own[i] if size is None else size for i, size in enumerate(sizes)]


def adaptive_avg_pool1d(input, output_size):
    """Averages over as many windows as the output is to have elements."""
    return lamella.adaptive_avg_pool1d(input, _listed(output_size))


def adaptive_avg_pool2d(input, output_size):
    """Averages over as many windows as the output is to have elements."""
    return _nn["adaptive_avg_pool2d"](input, _adaptive_sizes(input, output_size, 2))


def adaptive_avg_pool3d(input, output_size):
    """Averages over as many windows as the output is to have elements."""
    return _nn["adaptive_avg_pool3d"](input, _adaptive_sizes(input, output_size, 3))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest elements of as many windows as the output is to have elements."""
    values, indices = lamella.adaptive_max_pool1d(input, _listed(output_size))
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest elements of as many windows as the output is to have elements."""
    sizes = _adaptive_sizes(input, output_size, 2)
    values, indices = _nn["adaptive_max_pool2d"](input, sizes)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest elements of as many windows as the output is to have elements."""
    sizes = _adaptive_sizes(input, output_size, 3)
    values, indices = _nn["adaptive_max_pool3d"](input, sizes)
    return (values, indices) if return_indices else values


# ---- Normalisation ----


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Normalises each channel over the batch, or outside of training by running statistics."""
    if training:
        per_channel = input.size(0)
        for size in input.shape[2:]:
            per_channel *= size
        if per_channel == 1:
            raise ValueError(
                "batch_norm: expected more than 1 value for each channel in training, got "
                f"an input of shape {list(input.shape)}"
            )
    return lamella.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalises each channel of each sample."""
    return lamella.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises each group of channels of each sample."""
    return lamella.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divides by the root of the mean square over the last dimensions."""
    return lamella.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divides by a power of the mean square over `size` neighbouring channels."""
    if input.dim() < 3:
        raise ValueError(
            "local_response_norm: expected 'input' to have at least 3 dimensions, got "
            f"{input.dim()}"
        )
    if input.numel() == 0:
        return input
    square = (input * input).flatten(2).unsqueeze(1)
    square = _nn["pad"](square, [0, 0, size // 2, (size - 1) // 2])
    mean = _nn["avg_pool2d"](square, [size, 1], [1, 1]).squeeze(1).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


def bilinear(input1, input2, weight, bias=None):
    """input1 and input2 joined by a matrix for each output feature."""
    product = lamella.einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias


# ---- Dropout ----


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of what SELU gives."""
    op = lamella.alpha_dropout_ if inplace else lamella.alpha_dropout
    return op(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    op = lamella.feature_alpha_dropout_ if inplace else lamella.feature_alpha_dropout
    return op(input, p, training)


def _channel_dropout(name, dims):
    def dropout(input, p=0.5, training=True, inplace=False):
        """Sets whole channels to zero with probability `p` and scales the others, in training."""
        op = lamella.feature_dropout_ if inplace else lamella.feature_dropout
        if input.dim() == dims + 1:  # one sample
            result = op(input.unsqueeze(0), p, training)
            return input if inplace else result.squeeze(0)
        return op(input, p, training)

    dropout.__name__ = dropout.__qualname__ = name
    return dropout


dropout1d = _channel_dropout("dropout1d", 1)
dropout3d = _channel_dropout("dropout3d", 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Sets whole channels to zero with probability `p` and scales the others, in training."""
    op = lamella.feature_dropout_ if inplace else lamella.feature_dropout
    return op(input, p, training)


# ---- Windows as columns ----


def _pair(value):
    return [value, value] if isinstance(value, int) else value


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Each window of the image as a column."""
    return _nn["im2col"](input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns summed up where unfold took them from."""
    return _nn["col2im"](
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


# ---- Interpolation ----

_RESAMPLE = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
}
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resizes the dimensions behind the channels, to `size` or by `scale_factor`."""
    spatial = input.dim() - 2
    linear = mode in ("linear", "bilinear", "trilinear", "bicubic")
    if align_corners is not None and not linear:
        raise ValueError(f"interpolate: expected no 'align_corners' with mode {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: expected either 'size' or 'scale_factor'")
    if antialias:
        raise NotImplementedError("interpolate: expected 'antialias' to be False")
    scales = None
    if size is not None:
        size = list(size) if isinstance(size, (list, tuple)) else [size] * spatial
    else:
        several = isinstance(scale_factor, (list, tuple))
        scales = [float(s) for s in (scale_factor if several else [scale_factor] * spatial)]
        if len(scales) != spatial:
            raise ValueError(
                f"interpolate: expected 'scale_factor' to have {spatial} entries, got {len(scales)}"
            )
    if recompute_scale_factor or (mode == "area" and size is None):
        size = [int(input.size(i + 2) * s) for i, s in enumerate(scales)]
        scales = None
    if mode == "area":
        return _AREA[spatial](input, size)
    name = _RESAMPLE.get((mode, spatial))
    if name is None:
        raise NotImplementedError(
            f"interpolate: expected a mode for {spatial} dimensions, got {mode!r}"
        )
    if linear:
        return _nn[name](input, size, bool(align_corners), scales)
    return _nn[name](input, size, scales)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate under its former name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate with mode "nearest"."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate with mode "bilinear" and aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)
