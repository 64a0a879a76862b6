"""Rows of convolutions, pooling, losses, decompositions, and of gradients."""

from __future__ import annotations

from typing import Any

from kernel_rows.row import PLANES, SIZES, Row, Rows, normal, places, plane, sized, uniform


def network_rows() -> list[Row]:
    out = Rows()

    def convolution(
        name: str, x: tuple[int, ...], w: tuple[int, ...], options: str, jax: str, rank: int = 2
    ) -> None:
        """`jax` holds window strides, padding, dilation and groups for lax."""
        layout = "('NCHW', 'OIHW', 'NCHW')"
        out.add(
            name,
            0,
            {"x": normal(*x), "w": normal(*w)},
            f"F.conv{rank}d(x, w{options})",
            None,
            f"jax.lax.conv_general_dilated(x, w, {jax}, " f"dimension_numbers={layout})"
            if rank == 2
            else None,
        )

    one = "(1, 1), ((1, 1), (1, 1))"
    convolution("conv 3x3 64x56x56", (1, 64, 56, 56), (64, 64, 3, 3), ", padding=1", one)
    convolution("conv 3x3 8x3x64x64", (8, 3, 64, 64), (32, 3, 3, 3), ", padding=1", one)
    convolution(
        "conv 1x1 64x56x56", (1, 64, 56, 56), (256, 64, 1, 1), "", "(1, 1), ((0, 0), (0, 0))"
    )
    convolution(
        "conv depthwise 128x56x56",
        (1, 128, 56, 56),
        (128, 1, 3, 3),
        ", padding=1, groups=128",
        one + ", feature_group_count=128",
    )
    convolution(
        "conv 7x7 stride 2",
        (1, 3, 224, 224),
        (64, 3, 7, 7),
        ", stride=2, padding=3",
        "(2, 2), ((3, 3), (3, 3))",
    )
    convolution(
        "conv dilated",
        (1, 32, 56, 56),
        (32, 32, 3, 3),
        ", padding=2, dilation=2",
        "(1, 1), ((2, 2), (2, 2)), rhs_dilation=(2, 2)",
    )
    convolution("conv1d 8x64x1000", (8, 64, 1000), (64, 64, 3), ", padding=1", "", rank=1)
    out.add(
        "conv transposed 32x28x28",
        0,
        {"x": normal(1, 32, 28, 28), "w": normal(32, 16, 4, 4)},
        "F.conv_transpose2d(x, w, stride=2, padding=1)",
    )
    for name, x, w, options in (
        ("depthwise stride 2", (4, 96, 56, 56), (96, 1, 3, 3), ", padding=1, stride=2, groups=96"),
        ("8x1x28x28", (64, 1, 28, 28), (8, 1, 3, 3), ", padding=1"),
        ("1x1 stride 2", (8, 64, 28, 28), (128, 64, 1, 1), ", stride=2"),
        ("grouped", (4, 64, 28, 28), (64, 16, 3, 3), ", padding=1, groups=4"),
    ):
        out.add(f"conv {name}", 0, {"x": normal(*x), "w": normal(*w)},
                       f"F.conv2d(x, w{options})")  # fmt: skip
    for name, x, w, options in (
        ("conv1d depthwise 8x64x1000", (8, 64, 1000), (64, 1, 3), ", padding=1, groups=64"),
        ("conv1d stride 5", (4, 1, 16000), (32, 1, 10), ", stride=5"),
    ):
        out.add(name, 0, {"x": normal(*x), "w": normal(*w)}, f"F.conv1d(x, w{options})")
    for dtype in ("bfloat16", "float16"):
        kinds = {"x": dtype, "w": dtype}
        for name, x, w, options in (
            ("3x3 64x56x56", (1, 64, 56, 56), (64, 64, 3, 3), ", padding=1"),
            ("1x1 64x56x56", (1, 64, 56, 56), (256, 64, 1, 1), ""),
            ("depthwise 128x56x56", (1, 128, 56, 56), (128, 1, 3, 3), ", padding=1, groups=128"),
            ("8x3x64x64", (8, 3, 64, 64), (32, 3, 3, 3), ", padding=1"),
        ):
            out.add(f"conv {name}, {dtype}", 0, {"x": normal(*x), "w": normal(*w)},
                           f"F.conv2d(x, w{options})", dtypes=kinds)  # fmt: skip
    image = {"x": normal(8, 64, 56, 56)}
    out.add("max_pool 2 64x16x8x8", 0, {"x": normal(64, 16, 8, 8)}, "F.max_pool2d(x, 2)")
    nchw = "jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')"
    out.add("max_pool 2 8x64x56x56", 0, image, "F.max_pool2d(x, 2)", None, nchw)
    out.add("max_pool 3 stride 2 8x64x56x56", 0, image, "F.max_pool2d(x, 3, 2, 1)")
    out.add("avg_pool 2 8x64x56x56", 0, image, "F.avg_pool2d(x, 2)")
    out.add(
        "adaptive_avg_pool 1 8x64x56x56",
        0,
        image,
        "F.adaptive_avg_pool2d(x, 1)",
        None,
        "x.mean((2, 3), keepdims=True)",
    )
    out.add("adaptive_avg_pool 7 8x64x56x56", 0, image, "F.adaptive_avg_pool2d(x, 7)")
    out.add(
        "bilinear x2 8x64x28x28",
        0,
        {"x": normal(8, 64, 28, 28)},
        "F.interpolate(x, scale_factor=2, mode='bilinear')",
        None,
        "jax.image.resize(x, (8, 64, 56, 56), 'bilinear')",
    )
    out.add(
        "nearest x2 8x64x28x28", 0, {"x": normal(8, 64, 28, 28)}, "F.interpolate(x, scale_factor=2)"
    )
    for name, text in (
        ("max_pool 2", "F.max_pool2d(x, 2)"),
        ("avg_pool 2", "F.avg_pool2d(x, 2)"),
        ("adaptive_avg_pool 1", "F.adaptive_avg_pool2d(x, 1)"),
        ("bilinear x2", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
        ("batch_norm", "F.batch_norm(x, u, v, w, b)"),
    ):
        more = {
            "u": normal(64),
            "w": normal(64),
            "b": normal(64),
            "v": lambda random, n: random.random(64, dtype="float32") + 1,
        }
        out.add(f"{name} channels_last", 0, {**image, **more}, text, dtypes={"x": "channels_last"})
    logits = {"x": normal(64, 1000), "t": places((64,), 1000)}
    out.add(
        "cross_entropy 64x1000",
        0,
        logits,
        "F.cross_entropy(x, t)",
        None,
        "-jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], 1).mean()",
    )
    out += sized(
        "mse_loss",
        {"x": uniform(-2, 2), "y": uniform(-2, 2)},
        "F.mse_loss(x, y)",
        "np.mean((x - y) ** 2)",
        "((x - y) ** 2).mean()",
    )
    out += sized(
        "smooth_l1_loss", {"x": uniform(-2, 2), "y": uniform(-2, 2)}, "F.smooth_l1_loss(x, y)"
    )
    for n in (32, 256):
        spd = {
            "x": lambda random, size, n=n: (lambda a: (a @ a.T + n * _eye(n)).astype("f4"))(
                random.standard_normal((n, n))
            )
        }
        for name, np_name in (
            ("cholesky", "cholesky"),
            ("inv", "inv"),
            ("eigvalsh", "eigvalsh"),
            ("svdvals", None),
        ):
            out.add(
                f"{name} {n}",
                0,
                spd,
                f"m.linalg.{name}(x)",
                f"np.linalg.{np_name}(x)" if np_name else None,
                f"jnp.linalg.{np_name}(x)" if np_name else None,
            )
    return out


def _eye(n: int) -> Any:
    import numpy

    return numpy.eye(n)


def gradient_rows() -> list[Row]:
    """Forward and backward of one operator: the gradients of its floating-point arrays."""
    out = Rows()
    unary = [
        "tanh",
        "sigmoid",
        "exp",
        "log",
        "erfinv",
        "digamma",
        "sqrt",
        "abs",
        "sin",
        "cumsum",
        "sort",
        "logsumexp",
    ]
    for name in unary:
        inner = f"m.{name}(x)"
        if name == "sort":
            inner = "m.sort(x)[0]"
        if name in ("cumsum", "logsumexp"):
            inner = f"m.{name}(x, 0)"
        jnp = {
            "digamma": "jax.scipy.special.digamma(x)",
            "erfinv": "jax.scipy.special.erfinv(x)",
            "sigmoid": "jax.nn.sigmoid(x)",
            "logsumexp": "jax.scipy.special.logsumexp(x)",
            "cumsum": "jnp.cumsum(x)",
            "sort": "jnp.sort(x)",
        }.get(name, f"jnp.{name}(x)")
        out += sized(
            f"grad of {name}",
            {"x": uniform(0.05, 0.95)},
            f"grad({inner}, x)",
            None,
            f"jax.grad(lambda x: {jnp}.sum())(x)",
            sizes=SIZES[:2],
        )
    for name in ("gelu", "silu", "softplus", "mish", "elu", "leaky_relu", "hardswish"):
        exact = ", approximate=False" if name == "gelu" else ""
        jax = {"hardswish": "hard_swish"}.get(name, name)
        out += sized(
            f"grad of {name}",
            {"x": uniform(-2, 2)},
            f"grad(F.{name}(x), x)",
            None,
            f"jax.grad(lambda x: jax.nn.{jax}(x{exact}).sum())(x)",
            sizes=SIZES[:2],
        )
    p = {"x": plane()}
    out += sized("grad of softmax", p, "grad(m.softmax(x, -1), x)", None, None, sizes=SIZES[:2])
    out += sized(
        "grad of repeat_interleave",
        {"x": uniform(-2, 2)},
        "grad(m.repeat_interleave(x, 3), x)",
        None,
        None,
        sizes=SIZES[:2],
    )
    both = {"x": uniform(-2, 2), "i": places(None, 0)}
    out += sized(
        "grad of x[i]",
        both,
        "grad(x[i], x)",
        None,
        "jax.grad(lambda x: x[i].sum())(x)",
        sizes=SIZES[:2],
    )
    linear = {"x": normal(128, 384), "w": normal(1536, 384), "b": normal(1536)}
    out.add(
        "grad of linear 128x384x1536",
        0,
        linear,
        "grad(F.linear(x, w, b), x, w, b)",
        None,
        "jax.grad(lambda a: (a[0] @ a[1].T + a[2]).sum())((x, w, b))",
    )
    for x, w, options, name in (
        ((8, 16, 28, 28), (32, 16, 3, 3), ", padding=1", "3x3 8x16x28x28"),
        ((1, 64, 56, 56), (64, 64, 1, 1), "", "1x1 64x56x56"),
        ((1, 128, 28, 28), (128, 1, 3, 3), ", padding=1, groups=128", "depthwise 128x28x28"),
        ((64, 1, 8, 8), (16, 1, 3, 3), ", padding=1", "64x1x8x8"),
        ((8, 3, 32, 32), (32, 3, 3, 3), ", padding=1", "8x3x32x32"),
    ):
        out.add(
            f"grad of conv {name}",
            0,
            {"x": normal(*x), "w": normal(*w)},
            f"grad(F.conv2d(x, w{options}), x, w)",
        )
    qkv = {name: normal(1, 12, 128, 64) for name in "qkv"}
    jax = "jax.nn.dot_product_attention(*(t.swapaxes(1, 2) for t in a))"
    out.add(
        "grad of attention 12x128x64",
        0,
        qkv,
        "grad(F.scaled_dot_product_attention(q, k, v), q, k, v)",
        None,
        f"jax.grad(lambda a: {jax}.sum())((q, k, v))",
    )
    attend = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
    out.add("grad of attention 12x128x64, causal", 0, qkv, f"grad({attend}, q, k, v)")
    image = {"x": normal(8, 64, 56, 56)}
    for name in ("avg_pool2d(x, 2)", "adaptive_avg_pool2d(x, 7)",
                 "interpolate(x, scale_factor=2, mode='bilinear')"):  # fmt: skip
        out.add(f"grad of {name}", 0, image, f"grad(F.{name}, x)")
    out.add("grad of max_pool 2", 0, image, "grad(F.max_pool2d(x, 2), x)")
    ln = {
        "x": plane(),
        "w": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
        "b": lambda random, n: random.random(PLANES[n][1], dtype="float32"),
    }
    out += sized(
        "grad of layer_norm",
        ln,
        "grad(F.layer_norm(x, (x.shape[1],), w, b), x, w, b)",
        None,
        None,
        sizes=SIZES[:2],
    )
    return out
