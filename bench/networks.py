"""Networks that are written once over each library's operations: see network_rows.py.

An operation takes and returns the library's own values; weights are NumPy arrays made by `weight`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, HEADS, INNER, LAYERS = 384, 12, 1536, 6


class Weights:
    """Numbers that are the same in every library, as the library's own arrays."""

    def __init__(self, convert: Any) -> None:
        self.convert, self.random = convert, np.random.default_rng(0)
        self.all: list[Any] = []

    def __call__(self, *shape: int, scale: float = 0.05) -> Any:
        made = self.convert((self.random.standard_normal(shape) * scale).astype(np.float32))
        self.all.append(made)
        return made


def encoder(ops: Any, weight: Any) -> Any:
    """Six layers of MiniLM's shape."""
    layers = []
    for _ in range(LAYERS):
        sizes = [(WIDTH, WIDTH)] * 4 + [(INNER, WIDTH), (WIDTH, INNER)]
        layers.append([(weight(*size), weight(size[0])) for size in sizes])

    def run(x: Any, layers: Any) -> Any:
        for query, key, value, out, up, down in layers:
            parts = [ops.split_heads(ops.linear(x, *one), HEADS) for one in (query, key, value)]
            seen = ops.join_heads(ops.attention(*parts))
            x = ops.layer_norm(ops.add(x, ops.linear(seen, *out)))
            x = ops.layer_norm(ops.add(x, ops.linear(ops.gelu(ops.linear(x, *up)), *down)))
        return x

    return run, layers


def conv_net(ops: Any, weight: Any) -> Any:
    layers = [
        (weight(16, 1, 3, 3), weight(16)),
        (weight(32, 16, 3, 3), weight(32)),
        (weight(10, 512), weight(10)),
    ]

    def run(x: Any, layers: Any) -> Any:
        first, second, last = layers
        x = ops.max_pool(ops.relu(ops.conv(x, *first, 1, 1)), 2, 2, 0)
        x = ops.relu(ops.conv(x, *second, 1, 1))
        return ops.linear(ops.flatten(ops.max_pool(x, 2, 2, 0)), *last)

    return run, layers


def resnet(ops: Any, weight: Any) -> Any:
    """ResNet-18's shape, its normalisations folded into the convolutions."""

    def conv(out: int, given: int, size: int) -> Any:
        return weight(out, given, size, size, scale=(given * size * size) ** -0.5), weight(out)

    stem, blocks, given = conv(64, 3, 7), [], 64
    for out in (64, 128, 256, 512):
        for number in range(2):
            stride = 2 if number == 0 and out != 64 else 1
            short = conv(out, given, 1) if given != out else None
            blocks.append((conv(out, given, 3), conv(out, out, 3), short, stride))
            given = out
    strides = [block[3] for block in blocks]
    layers = (stem, [block[:3] for block in blocks], (weight(1000, 512), weight(1000)))

    def run(x: Any, layers: Any) -> Any:
        stem, blocks, last = layers
        x = ops.max_pool(ops.relu(ops.conv(x, *stem, 2, 3)), 3, 2, 1)
        for (first, second, short), stride in zip(blocks, strides):
            y = ops.conv(ops.relu(ops.conv(x, *first, stride, 1)), *second, 1, 1)
            if short is not None:
                x = ops.conv(x, *short, stride, 0)
            x = ops.relu(ops.add(x, y))
        return ops.linear(ops.mean_of_planes(x), *last)

    return run, layers


NETWORKS = {"encoder": encoder, "conv net": conv_net, "resnet": resnet}


def as_bytes(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 numbers and a scale for each row, whose product is near the matrix."""
    scale = (np.abs(w).max(1) / 127).astype(np.float32)
    return np.rint(w / scale[:, None]).astype(np.int8), scale


class Torchlike:
    """Lamella and PyTorch."""

    def __init__(self, m: Any) -> None:
        self.m, self.f = m, m.nn.functional
        self.add, self.relu, self.gelu = m.add, m.relu, self.f.gelu
        self.attention = self.f.scaled_dot_product_attention

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        if not isinstance(w, tuple):
            return self.f.linear(x, w, b)
        # Rows are rounded to bytes as well, as OpenVINO does with such weights.
        scale = x.abs().amax(-1, keepdim=True) / 127
        rows = (x / scale).round().to(self.m.int8).reshape(-1, x.shape[-1])
        sums = self.m._int_mm(rows, w[0].t()).reshape(*x.shape[:-1], -1)
        return sums.to(x.dtype) * (scale * w[1]) + b

    def split_heads(self, x: Any, heads: int) -> Any:
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def join_heads(self, x: Any) -> Any:
        return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def layer_norm(self, x: Any) -> Any:
        return self.f.layer_norm(x, x.shape[-1:])

    def conv(self, x: Any, w: Any, b: Any, stride: int, padding: int) -> Any:
        return self.f.conv2d(x, w, b, stride=stride, padding=padding)

    def max_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        return self.f.max_pool2d(x, size, stride, padding)

    def flatten(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)

    def mean_of_planes(self, x: Any) -> Any:
        return x.mean((2, 3))

    def loss(self, scores: Any, labels: Any) -> Any:
        return self.f.cross_entropy(scores, labels)


class Jax:
    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp = jax, jnp
        self.add, self.relu = jnp.add, jax.nn.relu
        self.attention = jax.nn.dot_product_attention

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=False)

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        if not isinstance(w, tuple):
            return x @ w.T + b
        return x @ w[0].astype(x.dtype).T * w[1] + b

    def split_heads(self, x: Any, heads: int) -> Any:
        return x.reshape(x.shape[0], x.shape[1], heads, -1)

    def join_heads(self, x: Any) -> Any:
        return x.reshape(x.shape[0], x.shape[1], -1)

    def layer_norm(self, x: Any) -> Any:
        gap = x - x.mean(-1, keepdims=True)
        return gap * self.jax.lax.rsqrt((gap * gap).mean(-1, keepdims=True) + 1e-5)

    def conv(self, x: Any, w: Any, b: Any, stride: int, padding: int) -> Any:
        pads = [(padding, padding)] * 2
        made = self.jax.lax.conv_general_dilated(x, w, (stride, stride), pads)
        return made + b[:, None, None]

    def max_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        return self.jax.lax.reduce_window(
            x, -self.jnp.inf, self.jax.lax.max, (1, 1, size, size), (1, 1, stride, stride), pads
        )

    def flatten(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)

    def mean_of_planes(self, x: Any) -> Any:
        return x.mean((2, 3))

    def loss(self, scores: Any, labels: Any) -> Any:
        scores = self.jax.nn.log_softmax(scores)
        return -self.jnp.take_along_axis(scores, labels[:, None], 1).mean()


class Onnx:
    """Writes an ONNX model, which OpenVINO and ONNX Runtime read."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        array = np.ascontiguousarray(array)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *given: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(given), [name], **attributes))
        return name

    def model(self, network: Any, layers: Any, shape: tuple[int, ...]) -> bytes:
        import onnx

        self.shape = shape
        result = network("x", layers)
        value = self.helper.make_tensor_value_info
        graph = self.helper.make_graph(
            self.nodes,
            "network",
            [value("x", onnx.TensorProto.FLOAT, shape)],
            [value(result, onnx.TensorProto.FLOAT, None)],
            self.constants,
        )
        opset = [self.helper.make_opsetid("", 20)]
        return self.helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()

    def add(self, x: str, y: str) -> str:
        return self.node("Add", x, y)

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def gelu(self, x: str) -> str:
        return self.node("Gelu", x)

    def linear(self, x: str, w: Any, b: Any) -> str:
        if not isinstance(w, tuple):
            return self.add(self.node("MatMul", x, self.constant(w.T)), self.constant(b))
        given = self.constant(w[0].T), self.constant(w[1])
        matrix = self.node("DequantizeLinear", *given, axis=1)
        return self.add(self.node("MatMul", x, matrix), self.constant(b))

    def split_heads(self, x: str, heads: int) -> str:
        shape = np.array([*self.shape[:2], heads, self.shape[2] // heads], np.int64)
        return self.node(
            "Transpose", self.node("Reshape", x, self.constant(shape)), perm=[0, 2, 1, 3]
        )

    def attention(self, q: str, k: str, v: str) -> str:
        scale = self.constant(np.float32((WIDTH // HEADS) ** -0.5))
        turned = self.node("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.node("Mul", self.node("MatMul", q, turned), scale)
        return self.node("MatMul", self.node("Softmax", scores, axis=-1), v)

    def join_heads(self, x: str) -> str:
        shape = self.constant(np.array(self.shape, np.int64))
        return self.node("Reshape", self.node("Transpose", x, perm=[0, 2, 1, 3]), shape)

    def layer_norm(self, x: str) -> str:
        ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        return self.node("LayerNormalization", x, self.constant(ones), self.constant(zeros))

    def conv(self, x: str, w: Any, b: Any, stride: int, padding: int) -> str:
        given = x, self.constant(w), self.constant(b)
        return self.node("Conv", *given, strides=[stride] * 2, pads=[padding] * 4)

    def max_pool(self, x: str, size: int, stride: int, padding: int) -> str:
        window = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [padding] * 4}
        return self.node("MaxPool", x, **window)

    def flatten(self, x: str) -> str:
        return self.node("Flatten", x)

    def mean_of_planes(self, x: str) -> str:
        return self.flatten(self.node("GlobalAveragePool", x))
