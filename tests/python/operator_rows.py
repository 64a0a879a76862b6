"""The table of differentiable operators: functions, arguments and dtypes.

A row names a function by its path under `lamella` and describes its arguments; their tensors are
made anew for each dtype, with the same values each time. Values keep away from points where the
function has no derivative. test_gradcheck.py runs the rows.
"""

import copy
import math
import random

import lamella

REAL = ("float64",)
BOTH = ("float64", "complex128")


class T:
    """A tensor that requires gradients, of values between low and high.

    apart: no two values are closer, and none is closer to 0. distinct order is random.
    """

    def __init__(self, *shape, low=-1.5, high=1.5, apart=0.0):
        self.shape, self.low, self.high, self.apart = shape, low, high, apart

    def grown(self, times):
        """The same with every size but 1 so many times as large."""
        shape = [size * times if size > 1 else size for size in self.shape]
        low = 0.03 - self.apart * math.prod(shape) / 2 if self.apart else self.low
        return T(*shape, low=low, high=self.high, apart=self.apart)

    def numbers(self, source, count):
        if not self.apart:
            return [source.uniform(self.low, self.high) for _ in range(count)]
        steps = list(range(count))
        source.shuffle(steps)
        return [self.low + self.apart * (0.5 + k) for k in steps]

    def make(self, source, dtype):
        count = math.prod(self.shape)
        values = self.numbers(source, count)
        if dtype == "complex128":
            values = [complex(a, b) for a, b in zip(values, self.numbers(source, count))]
        made = lamella.tensor(values, dtype=getattr(lamella, dtype)).reshape(self.shape)
        return made.detach().requires_grad_()


def P(*shape):
    """Positive."""
    return T(*shape, low=0.4, high=1.8)


def U(*shape):
    """Within (-1, 1), where inverse functions are smooth."""
    return T(*shape, low=-0.8, high=0.8)


def D(*shape):
    """All different, none near 0: for maxima, sorting, and functions with a kink."""
    count = math.prod(shape)
    return T(*shape, low=-0.2 * count + 0.03, high=0, apart=0.4)


class I:  # noqa: E742
    """A tensor of int64, or of the dtype that is named."""

    def __init__(self, values, dtype=None):
        self.values = values
        self.dtype = dtype and getattr(lamella, dtype)

    def make(self, source, dtype):
        return lamella.tensor(self.values, dtype=self.dtype)


class B(I):
    """A tensor of bool."""


class C:
    """A constant tensor of the row's dtype, or of float64."""

    def __init__(self, values):
        self.values = values

    def make(self, source, dtype):
        return lamella.tensor(self.values, dtype=getattr(lamella, dtype))


class Spd:
    """A Hermitian positive definite matrix."""

    def __init__(self, *shape):
        self.shape = shape
        self.inner = T(*shape)

    def grown(self, times):
        return Spd(*self.inner.grown(times).shape)

    def make(self, source, dtype):
        a = self.inner.make(source, dtype).detach()
        n = a.shape[-1]
        made = a.matmul(a.mH) + n * lamella.eye(n, dtype=a.dtype)
        return made.requires_grad_()


class Row:
    def __init__(
        self, path, *args, dtypes=REAL, covers=(), forward=True, second=True, fn=None, **kw
    ):
        self.path, self.args, self.kwargs = path, args, kw
        self.dtypes, self.forward, self.second, self.fn = dtypes, forward, second, fn
        self.covers = {path.rpartition(".")[2], *covers}

    @property
    def name(self):
        return f"{self.path}({', '.join(type(a).__name__ for a in self.args)})"

    def function(self):
        found = lamella
        for part in self.path.split("."):
            found = getattr(found, part)
        return self.fn(found) if self.fn is not None else found

    def grown(self, elements):
        """The row with tensors of about so many elements, in which sizes that were equal still are.

        Numbers among the arguments stay, and may not fit any more.
        """

        def find(value):
            if isinstance(value, (list, tuple)):
                return [shape for item in value for shape in find(item)]
            return [value.shape] if hasattr(value, "grown") else []

        def grow(value, times):
            if isinstance(value, (list, tuple)):
                return type(value)(grow(item, times) for item in value)
            return value.grown(times) if hasattr(value, "grown") else value

        shapes = find([self.args, list(self.kwargs.values())])
        times = 1
        for shape in shapes:
            dims = sum(size > 1 for size in shape)
            if dims:
                each = int((elements / math.prod(shape)) ** (1 / dims))
                times = max(1, each if times == 1 else min(times, each))
        row = copy.copy(self)
        row.args = grow(self.args, times)
        row.kwargs = {key: grow(value, times) for key, value in self.kwargs.items()}
        return row

    def call(self, dtype, place=None):
        """A function of tensors that require gradients, and those tensors.

        place: the device of the other tensors among the arguments.
        """
        source = random.Random(self.path)

        def make(value):
            if hasattr(value, "make"):
                return value.make(source, dtype)
            if isinstance(value, (list, tuple)):
                return type(value)(make(item) for item in value)
            return value

        args = make(self.args)
        kwargs = {key: make(value) for key, value in self.kwargs.items()}
        inputs = []

        def find(value):
            if isinstance(value, lamella.Tensor) and value.requires_grad:
                inputs.append(value)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    find(item)

        find(args)
        find(list(kwargs.values()))
        function = self.function()

        def with_inputs(*now):
            now = iter(now)

            def put(value):
                if isinstance(value, lamella.Tensor) and value.requires_grad:
                    return next(now)
                if isinstance(value, lamella.Tensor) and place is not None:
                    return value.to(place)
                if isinstance(value, (list, tuple)):
                    return type(value)(put(item) for item in value)
                return value

            called = put(args)
            return floating(function(*called, **{k: put(v) for k, v in kwargs.items()}))

        return with_inputs, tuple(inputs)


def floating(result):
    """The results that have gradients."""
    if isinstance(result, lamella.Tensor):
        return result
    return tuple(
        t
        for t in result
        if isinstance(t, lamella.Tensor) and (t.is_floating_point() or t.is_complex())
    )


def hermitian(function):
    """Of a matrix of which only a triangle is read."""
    return lambda a: function(a + a.mH)


def factors(function):
    """Without the permutation, which has no gradient."""
    return lambda *args: floating(function(*args))[1:]


def of_factor(function):
    """Of the Cholesky factor of a matrix, in place of the matrix, the last of the tensors."""

    def called(*args):
        upper = args[-1] is True
        *others, a = args[:-1] if upper else args
        factor = lamella.linalg.cholesky(a + a.mH, upper=upper)
        return function(*others, factor, upper)

    return called


def of_product(function):
    """Singular values and what they make up: vectors are unique up to a phase."""

    def wrapped(a):
        u, s, vh = function(a)
        k = s.shape[-1]
        return s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]

    return wrapped


def least_squares(function):
    """The solution: residuals are PyTorch's only where there are more rows than columns."""
    return lambda a, b: function(a, b)[0]


F = "nn.functional."
M, N3, V = (2, 3), (2, 3, 2), (3,)


def unary(names, argument, dtypes=REAL, **kw):
    return [Row(name, argument, dtypes=dtypes, **kw) for name in names.split()]


ROWS = [
    # Pointwise, smooth everywhere that the values go.
    *unary("exp exp2 expm1 sin cos sinh cosh tanh sigmoid neg atan asinh", U(*M), BOTH),
    *unary("nn.functional.silu", U(*M)),
    *unary("reciprocal sqrt rsqrt log log2 log10 log1p", P(*M), BOTH),
    *unary("asin acos atanh tan", T(*M, low=-0.7, high=0.7), BOTH),
    *unary("abs angle sgn", D(*M), BOTH),
    *unary("acosh", T(*M, low=1.3, high=2.5), BOTH),
    *unary("erf erfc erfinv i0 special.i0e special.i1 special.i1e sinc special.erfcx", U(*M)),
    *unary("special.entr lgamma digamma special.ndtri logit", T(*M, low=0.2, high=0.8)),
    *unary("special.log_ndtr nan_to_num frac", T(*M, low=0.1, high=0.9)),
    *unary("relu floor ceil round trunc sign nn.functional.elu nn.functional.selu", D(*M)),
    *unary("nn.functional.leaky_relu nn.functional.hardtanh nn.functional.celu", D(*M)),
    *unary("nn.functional.gelu nn.functional.mish nn.functional.softplus", T(*M)),
    *unary("nn.functional.logsigmoid nn.functional.softsign nn.functional.tanhshrink", D(*M)),
    *unary("nn.functional.hardswish", D(*M)),
    *unary("nn.functional.hardsigmoid", D(*M), second=False),
    *unary("nn.functional.softshrink nn.functional.hardshrink nn.functional.relu6", D(*M)),
    Row(F + "gelu", T(*M), approximate="tanh"),
    Row(F + "threshold", D(*M), 0.1, 2.0),
    Row("polygamma", 1, P(*M)),
    Row(F + "prelu", D(2, 3), P(3), covers=("_prelu_kernel",)),
    Row(F + "glu", T(2, 4)),
    # Binary, with broadcasting.
    *[Row(n, T(*M), T(*V), dtypes=BOTH) for n in ("add", "sub", "mul")],
    Row("add", T(*M), T(1), alpha=2.5, dtypes=BOTH),
    Row("div", T(*M), P(*V), dtypes=BOTH),
    Row("div", T(*M), P(*V), rounding_mode="floor"),
    Row("mul", T(*M), 2.5, dtypes=BOTH),
    Row("pow", P(*M), P(*V), dtypes=BOTH),
    Row("pow", P(*M), 2.5, dtypes=BOTH),
    Row("pow", 1.5, T(*M), dtypes=BOTH),
    *[Row(n, P(*M), T(*V)) for n in ("atan2", "hypot", "logaddexp", "logaddexp2", "copysign")],
    *[Row(n, D(*M), D(*V)) for n in ("maximum", "minimum", "fmax", "fmin")],
    *[Row(n, T(2, low=2.2, high=2.8), T(2, low=0.9, high=1.1)) for n in ("fmod", "remainder")],
    *[Row(n, P(*M), P(*V)) for n in ("xlogy", "special.xlog1py")],
    Row("nextafter", D(*M), P(*V)),
    Row("heaviside", C([[0, 1.5, -0.5], [-2, 0, 0]]), T(*V)),
    Row("lerp", T(*M), T(*M), T(*V), dtypes=BOTH),
    Row("lerp", T(*M), T(*M), 0.3, dtypes=BOTH),
    Row("addcmul", T(*M), T(*M), T(*V), value=1.5, dtypes=BOTH),
    Row("addcdiv", T(*M), T(*M), P(*V), value=1.5, dtypes=BOTH),
    Row("where", B([[True, False, True], [False, False, True]]), T(*M), T(*V), dtypes=BOTH),
    Row("clamp", D(*M), min=-0.5, max=0.45),
    Row("clamp", D(*M), D(*V), covers=("clamp_min", "clamp_max")),
    Row("polar", P(*M), T(*M)),
    Row("complex", T(*M), T(*M)),
    # Reductions and scans.
    *[Row(n, T(*N3), dtypes=BOTH) for n in ("sum", "mean", "prod")],
    *[Row(n, T(*N3), 1, dtypes=BOTH) for n in ("sum", "mean", "prod", "cumsum", "cumprod")],
    *[Row(n, T(*N3), 1) for n in ("var", "std", "logsumexp")],
    Row("logcumsumexp", T(*N3), 1, dtypes=BOTH),
    *[Row(n, T(*N3), 1, covers=(f"_{n}",)) for n in ("softmax", "log_softmax")],
    Row("nansum", T(*N3), (0, 2)),
    Row("aminmax", D(*N3)),
    Row("aminmax", D(*N3), dim=1, keepdim=True),
    *[Row(n, D(*N3)) for n in ("amax", "amin", "max", "min", "median", "nanmedian")],
    *[Row(n, D(*N3), 1) for n in ("amax", "amin", "max", "min", "median", "nanmedian", "mode")],
    *[Row(n, D(*N3), 1) for n in ("cummax", "cummin", "sort")],
    Row("kthvalue", D(*N3), 2, 1),
    Row("topk", D(*N3), 2, 1),
    Row("linalg.vector_norm", D(*M), covers=("linalg_vector_norm",), dtypes=BOTH),
    Row("linalg.vector_norm", D(*M), 3, 1),
    *[Row("cdist", T(3, 2), T(4, 2), p, covers=("_cdist_forward",)) for p in (1.0, 2.0, 3.0)],
    Row("pdist", D(4, 3)),
    # Views, copies, joining.
    Row("reshape", T(*M), (3, 2), dtypes=BOTH, covers=("view", "_unsafe_view", "_reshape_alias")),
    Row("Tensor.expand", T(1, 3), (2, 3), dtypes=BOTH),
    Row("permute", T(*N3), (2, 0, 1), dtypes=BOTH),
    Row("transpose", T(*M), 0, 1, dtypes=BOTH),
    Row("t", T(*M), dtypes=BOTH),
    Row("unsqueeze", T(*M), 1, dtypes=BOTH),
    Row("squeeze", T(1, 3), 0, dtypes=BOTH),
    Row("select", T(*M), 1, 2, dtypes=BOTH),
    Row("narrow", T(*M), 1, 1, 2, dtypes=BOTH, covers=("slice",)),
    Row("Tensor.unfold", T(5), 0, 3, 1, dtypes=BOTH),
    Row("diagonal", T(3, 3), 1, dtypes=BOTH),
    Row("diag_embed", T(*M), dtypes=BOTH),
    Row("trace", T(3, 3), dtypes=BOTH),
    Row("split", T(5, 2), 2, dtypes=BOTH, covers=("split_with_sizes", "unsafe_split")),
    Row("unbind", T(*M), 1, dtypes=BOTH),
    Row("as_strided", T(7), (2, 2), (3, 2), 1, dtypes=BOTH),
    Row("view_as_real", T(*M), dtypes=("complex128",)),
    Row("view_as_complex", T(3, 2)),
    Row("conj_physical", T(*M), dtypes=BOTH),
    Row("_conj", T(*M), dtypes=("complex128",)),
    Row("_neg_view", T(*M), dtypes=BOTH),
    Row("clone", T(*M), dtypes=BOTH, covers=("alias", "_to_copy", "copy", "lift", "lift_fresh")),
    Row("cat", [T(*M), T(1, 3)], dtypes=BOTH),
    Row("stack", [T(*M), T(*M)], 1, dtypes=BOTH),
    Row("block_diag", [T(*M), T(3), T(1, 2)], dtypes=BOTH),
    Row("Tensor.repeat", T(*M), (2, 2), dtypes=BOTH),
    Row("flip", T(*M), (1,), dtypes=BOTH),
    Row("roll", T(*M), 1, 1, dtypes=BOTH),
    Row("rot90", T(*M), dtypes=BOTH),
    Row("tril", T(3, 3), dtypes=BOTH),
    Row("triu", T(3, 3), dtypes=BOTH),
    Row(F + "pad", T(*M), (1, 1), dtypes=BOTH, covers=("constant_pad_nd",)),
    Row("select_scatter", T(*M), T(2), 1, 2, dtypes=BOTH),
    Row("slice_scatter", T(*M), T(2, 2), 1, 1, dtypes=BOTH),
    Row("diagonal_scatter", T(3, 3), T(3), dtypes=BOTH),
    Row("as_strided_scatter", T(7), T(2, 2), (2, 2), (3, 2), 1, dtypes=BOTH),
    # Indexing.
    Row("index_select", T(*M), 1, I([2, 0, 2]), dtypes=BOTH),
    Row("gather", T(*M), 1, I([[2, 0], [1, 1]]), dtypes=BOTH),
    Row("scatter", T(*M), 1, I([[2, 0], [1, 0]]), T(2, 2), dtypes=BOTH),
    Row("scatter", T(*M), 1, I([[2, 0], [1, 0]]), 1.5, dtypes=BOTH),
    Row("scatter_add", T(*M), 1, I([[2, 2], [1, 0]]), T(2, 2), dtypes=BOTH),
    Row("scatter_reduce", D(*M), 1, I([[2, 2], [1, 0]]), D(2, 2), "amax",
        second=False, forward=False),
    *[Row("index_reduce", D(*M), 1, I([2, 2]), T(2, 2, low=-0.7, apart=0.4), reduce,
          include_self=include)
      for reduce in ("prod", "mean", "amax", "amin") for include in (True, False)],
    Row("index_add", T(*M), 1, I([2, 0]), T(2, 2), alpha=1.5, dtypes=BOTH),
    Row("index_copy", T(*M), 1, I([2, 0]), T(2, 2), dtypes=BOTH),
    Row("index_fill", T(*M), 1, I([2, 0]), 1.5, dtypes=BOTH),
    Row("index_put", T(*M), (I([0, 1, 0]), I([1, 1, 1])), T(3), accumulate=True, dtypes=BOTH,
        covers=("_index_put_impl_",)),
    Row("ops.aten.index", T(*M), [I([0, 1, 0]), I([1, 1, 1])], dtypes=BOTH,
        covers=("_unsafe_index",)),
    Row("masked_fill", T(*M), B([[True, False, True]]), 2.5, dtypes=BOTH),
    Row("masked_select", T(*M), B([[True, False, True]]), dtypes=BOTH),
    Row("masked_scatter", T(*M), B([[True, False, True], [False, True, False]]), T(4), dtypes=BOTH),
    Row("take", T(*M), I([5, 0, 5]), dtypes=BOTH),
    Row("put", T(*M), I([5, 0]), T(2), dtypes=BOTH),
    Row(F + "embedding", I([0, 2, 0]), T(3, 2), covers=("embedding",)),
    # Matrix products and linear algebra.
    Row("mm", T(2, 3), T(3, 2), dtypes=BOTH),
    Row("bmm", T(2, 2, 3), T(2, 3, 2), dtypes=BOTH),
    Row("mv", T(2, 3), T(3), dtypes=BOTH),
    Row("dot", T(3), T(3), dtypes=BOTH),
    Row("vdot", T(3), T(3), dtypes=BOTH),
    Row("addmm", T(2, 2), T(2, 3), T(3, 2), beta=0.5, alpha=1.5, dtypes=BOTH),
    Row("addmv", T(2), T(2, 3), T(3), dtypes=BOTH),
    Row("addr", T(2, 3), T(2), T(3), dtypes=BOTH),
    Row("baddbmm", T(2, 2, 2), T(2, 2, 3), T(2, 3, 2), dtypes=BOTH),
    Row("addbmm", T(2, 2), T(2, 2, 3), T(2, 3, 2), dtypes=BOTH),
    Row("matmul", T(2, 2, 3), T(3, 2), dtypes=BOTH),
    Row("einsum", "ij,jk->ki", T(2, 3), T(3, 2), dtypes=BOTH),
    Row(F + "linear", T(2, 3), T(2, 3), T(2), dtypes=BOTH, covers=("linear",)),
    Row("linalg.cross", T(2, 3), T(2, 3), dtypes=BOTH, covers=("linalg_cross",)),
    Row("linalg.cholesky", Spd(3, 3), dtypes=BOTH, fn=hermitian, covers=("linalg_cholesky_ex",)),
    Row("linalg.inv", Spd(3, 3), dtypes=BOTH, covers=("linalg_inv_ex",)),
    Row("linalg.solve", Spd(3, 3), T(3, 2), dtypes=BOTH, covers=("_linalg_solve_ex",)),
    Row("linalg.solve_triangular", Spd(3, 3), T(3, 2), upper=True, dtypes=BOTH,
        covers=("linalg_solve_triangular",)),
    Row("linalg.det", Spd(3, 3), dtypes=BOTH, covers=("_linalg_det",)),
    Row("linalg.slogdet", Spd(3, 3), covers=("_linalg_slogdet",)),
    Row("linalg.qr", Spd(3, 3), covers=("linalg_qr",)),
    Row("linalg.lu", Spd(3, 3), fn=factors,
        covers=("linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve")),
    Row("lu_unpack", T(4, 3), I([4, 3, 3], "int32"), fn=factors),
    Row("cholesky_inverse", Spd(3, 3), dtypes=BOTH, fn=of_factor),
    Row("cholesky_inverse", Spd(3, 3), True, dtypes=BOTH, fn=of_factor),
    Row("cholesky_solve", T(3, 2), Spd(3, 3), dtypes=BOTH, fn=of_factor),
    Row("cholesky_solve", T(3, 2), Spd(3, 3), True, dtypes=BOTH, fn=of_factor),
    Row("linalg.lstsq", T(4, 2), T(4, 3), dtypes=BOTH, fn=least_squares),
    Row("linalg.matrix_exp", T(3, 3), dtypes=BOTH),
    Row("linalg.svd", T(3, 2), dtypes=BOTH, fn=of_product, covers=("_linalg_svd",)),
    Row("linalg.svd", T(2, 3), dtypes=BOTH, fn=of_product, covers=("_linalg_svd",)),
    Row("linalg.vander", T(2, 3), N=4, dtypes=BOTH),
    Row("linalg.svdvals", T(3, 2), dtypes=BOTH, covers=("_linalg_svd",)),
    Row("linalg.eigvalsh", Spd(3, 3), dtypes=BOTH, fn=hermitian, covers=("_linalg_eigh",)),
    Row("linalg.pinv", T(3, 2), covers=("linalg_pinv",)),
    # Losses, norms, pools, convolutions.
    Row(F + "mse_loss", T(*M), T(*M)),
    *[Row(F + n, D(*M), T(*M, low=-0.05, high=0.05)) for n in ("l1_loss", "smooth_l1_loss")],
    Row(F + "huber_loss", D(*M), T(*M, low=-0.05, high=0.05)),
    Row(F + "soft_margin_loss", T(*M), C([[1, -1, 1], [-1, 1, 1]])),
    Row(F + "binary_cross_entropy", T(*M, low=0.2, high=0.8), C([[1, 0, 1], [0, 1, 1]])),
    Row(F + "nll_loss", T(2, 3), I([2, 0]), covers=("nll_loss_forward",)),
    Row(F + "cross_entropy", T(2, 3, 2), I([[2, 0], [1, 1]]), covers=("nll_loss2d_forward",)),
    Row(F + "layer_norm", T(2, 4), (4,), T(4), T(4), covers=("native_layer_norm",)),
    Row(F + "rms_norm", T(2, 4), (4,), T(4), covers=("_fused_rms_norm",), forward=False),
    Row(F + "group_norm", T(2, 4, 2), 2, T(4), T(4), covers=("native_group_norm",)),
    Row(F + "batch_norm", T(3, 2, 2), None, None, T(2), T(2), True,
        covers=("native_batch_norm", "_native_batch_norm_legit",
                "_native_batch_norm_legit_no_training")),
    Row(F + "conv1d", T(1, 2, 4), T(2, 2, 2), T(2), covers=("convolution",)),
    Row(F + "conv2d", T(1, 2, 3, 3), T(2, 2, 2, 2), T(2), padding=1, stride=2),
    Row(F + "conv_transpose2d", T(1, 2, 2, 2), T(2, 1, 2, 2), T(1)),
    Row(F + "max_pool2d", D(1, 1, 4, 4), 2, covers=("max_pool2d_with_indices",)),
    Row(F + "max_pool3d", D(1, 1, 2, 2, 4), 2, covers=("max_pool3d_with_indices",)),
    Row(F + "avg_pool2d", T(1, 1, 4, 4), 2),
    Row(F + "avg_pool3d", T(1, 1, 2, 2, 4), 2),
    Row(F + "adaptive_avg_pool2d", T(1, 1, 4, 3), 2, covers=("_adaptive_avg_pool2d",)),
    Row(F + "adaptive_avg_pool3d", T(1, 1, 2, 4, 3), 2, covers=("_adaptive_avg_pool3d",)),
    Row(F + "adaptive_max_pool2d", D(1, 1, 4, 3), 2),
    Row(F + "adaptive_max_pool3d", D(1, 1, 2, 4, 3), 2),
    *[Row(F + "pad", T(1, 2, *[3] * n), [1, 1] * n, mode=mode, covers=(f"{word}_pad{n}d",))
      for n in (1, 2, 3)
      for mode, word in (("reflect", "reflection"), ("replicate", "replication"))],
    Row(F + "unfold", T(1, 2, 3, 3), 2, covers=("im2col",)),
    Row(F + "fold", T(1, 4, 4), (3, 3), 2, covers=("col2im",)),
    *[Row(F + "interpolate", T(1, 1, *[2] * n), scale_factor=2, mode=mode,
          covers=(f"upsample_{word}{n}d", f"_upsample_nearest_exact{n}d"))
      for n, mode, word in ((1, "nearest", "nearest"), (2, "nearest", "nearest"),
                            (3, "nearest", "nearest"), (1, "linear", "linear"),
                            (2, "bilinear", "bilinear"), (3, "trilinear", "trilinear"))],
    Row(F + "scaled_dot_product_attention", T(1, 2, 3, 2), T(1, 2, 3, 2), T(1, 2, 3, 2),
        forward=False, second=False,
        covers=("_scaled_dot_product_flash_attention_for_cpu",)),
]  # fmt: skip

# Differentiable operators without a row of their own, each with the reason.
WITHOUT_ROW = {
    "fill": "test_in_place",
    "zero_": "test_in_place",
    "transpose_": "test_in_place",
    "detach": "has no gradient",
    "view": "Tensor.view is reshape's",
    "linalg_eig": "its phases are free; compared with PyTorch in test_op_db_gradients.py",
    "native_dropout": "draws random numbers",
    "bernoulli": "draws random numbers",
    "normal": "draws random numbers",
    "log_sigmoid": "nn.functional.logsigmoid",
    "special_zeta": "not differentiable in its first argument; see test_op_db_gradients.py",
}
