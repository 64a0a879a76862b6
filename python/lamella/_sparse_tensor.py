"""Sparse tensors: a layout above dense kernels.

A SparseTensor holds the places of its elements (`sparse_coo`: a matrix of coordinates;
`sparse_csr`: where each row begins, and columns) and their values, all of them dense tensors, and
each function of it is operators on these. So values carry the gradients, in any order and mode:
`x.to_sparse()` gathers from `x`, `to_dense` scatters into zeros, and a product gathers rows of its
dense side. What is not stored is no part of a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor

__all__ = ["SparseTensor"]

# Functions that leave a zero as it is, so that those of what is stored are those of all.
_ZEROS_STAY = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "expm1",
    "floor", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
)  # fmt: skip


def check(function: str, condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(f"{function}: expected {text}")


def _strides(sizes: Sequence[int]) -> list[int]:
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step *= size
    return steps[::-1]


# Functions of sparse tensors stand above this file; lamella.sparse, loaded by need, has them.
def _functions() -> Any:
    module: Any = lamella.sparse
    return module._sparse_functions


def _shapes() -> Any:
    module: Any = lamella.sparse
    return module._sparse_shapes


class SparseTensor:
    """A tensor of which only some elements, or dense parts, are stored. It is no Tensor: operators
    that its methods and lamella.sparse's functions do not know take `x.to_dense()`."""

    __slots__ = ("_places", "_stored", "_crow", "_coalesced", "shape")

    def __init__(
        self,
        places: Tensor,
        stored: Tensor,
        shape: Sequence[int],
        crow: Tensor | None = None,
        coalesced: bool = False,
    ) -> None:
        self._places, self._stored, self._crow = places, stored, crow
        self._coalesced = coalesced or crow is not None
        self.shape = lamella.Size(shape)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What functions of lamella that know no sparse tensors do with one among their
        arguments."""
        return _functions().answer(function, args, kwargs or {})

    # ---- What it is ------------------------------------------------------------------------------

    @property
    def layout(self) -> Any:
        return lamella.sparse_coo if self._crow is None else lamella.sparse_csr

    @property
    def is_sparse(self) -> bool:
        return self._crow is None

    @property
    def is_sparse_csr(self) -> bool:
        return self._crow is not None

    @property
    def dtype(self) -> Any:
        return self._stored.dtype

    @property
    def device(self) -> Any:
        return self._stored.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return self._stored.requires_grad

    @property
    def grad(self) -> SparseTensor | None:
        """The gradients of the values, where this one has them."""
        return None if self._stored.grad is None else self._with(self._stored.grad)

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparse_dim(self) -> int:
        return int(self._places.size(0)) if self._crow is None else 2

    def dense_dim(self) -> int:
        return self._stored.dim() - 1

    def _nnz(self) -> int:
        return int(self._stored.size(0))

    def is_coalesced(self) -> bool:
        return self._coalesced

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._stored.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._stored.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._stored.grad_fn

    @property
    def is_cuda(self) -> bool:
        return self._stored.is_cuda

    def is_same_size(self, other: Any) -> bool:
        return tuple(self.shape) == tuple(other.shape)

    def is_floating_point(self) -> bool:
        return self._stored.is_floating_point()

    def is_complex(self) -> bool:
        return self._stored.is_complex()

    def detach(self) -> SparseTensor:
        return self._with(self._stored.detach())

    def clone(self) -> SparseTensor:
        return self._with(self._stored.clone())

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """With the values' dtype and the device changed as Tensor.to does."""
        stored = self._stored.to(*args, **kwargs)
        places = self._places.to(stored.device)
        crow = None if self._crow is None else self._crow.to(stored.device)
        return SparseTensor(places, stored, self.shape, crow, self._coalesced)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> SparseTensor:
        return self.to(device)

    def _with(self, stored: Tensor) -> SparseTensor:
        return SparseTensor(self._places, stored, self.shape, self._crow, self._coalesced)

    # ---- Its parts -------------------------------------------------------------------------------

    def _is(self, function: str, csr: bool) -> None:
        if (self._crow is not None) != csr:
            wanted = lamella.sparse_csr if csr else lamella.sparse_coo
            raise RuntimeError(
                f"{function}: expected a tensor of layout {wanted}, got {self.layout}"
            )

    def indices(self) -> Tensor:
        self._is("indices", False)
        check("indices", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._places

    def values(self) -> Tensor:
        check("values", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._stored

    def _indices(self) -> Tensor:
        self._is("_indices", False)
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def crow_indices(self) -> Tensor:
        self._is("crow_indices", True)
        return self._crow  # type: ignore[return-value]

    def col_indices(self) -> Tensor:
        self._is("col_indices", True)
        return self._places

    def _coordinates(self) -> Tensor:
        """[sparse dimensions, elements], of either layout."""
        if self._crow is None:
            return self._places
        counts = self._crow.diff()
        rows = lamella.arange(self.shape[0], device=self.device).repeat_interleave(counts)
        return lamella.stack([rows, self._places.to(lamella.int64)])

    # ---- In place --------------------------------------------------------------------------------

    def _become(self, other: SparseTensor) -> SparseTensor:
        leaf = self._stored.is_leaf and self._stored.requires_grad and lamella.is_grad_enabled()
        check("sparse", not leaf, "no leaf that requires gradients to be written in place")
        self._places, self._stored, self._crow = other._places, other._stored, other._crow
        self._coalesced = other._coalesced
        return self

    def add_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        check("add_", isinstance(other, SparseTensor), "'other' to be sparse")
        return self._become(self.add(other, alpha=alpha))

    def sub_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        check("sub_", isinstance(other, SparseTensor), "'other' to be sparse")
        return self._become(self.add(other, alpha=-alpha))

    def mul_(self, other: Any) -> SparseTensor:
        return self._become(self.mul(other))

    def div_(self, other: Any) -> SparseTensor:
        return self._become(self.div(other))

    def zero_(self) -> SparseTensor:
        """Stores nothing any more."""
        crow = None if self._crow is None else lamella.zeros_like(self._crow)
        kept = SparseTensor(self._places[..., :0], self._stored[:0], self.shape, crow, True)
        return self._become(kept)

    # ---- Between layouts -------------------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The same tensor with each place once, in order; values of a place that stands more than
        once are summed."""
        if self._coalesced:
            return self
        self._is("coalesce", False)
        sparse = self.shape[: self.sparse_dim()]
        steps = lamella.tensor(_strides(sparse), dtype=lamella.int64, device=self.device)
        keys = (self._places * steps.unsqueeze(1)).sum(0)
        unique, inverse = lamella.unique(keys, return_inverse=True)
        stored = lamella.zeros(
            (unique.size(0), *self._stored.shape[1:]), dtype=self.dtype, device=self.device
        ).index_add(0, inverse, self._stored)
        places = [
            unique.div(max(step, 1), rounding_mode="floor").remainder(max(size, 1))
            for size, step in zip(sparse, _strides(sparse))
        ]
        found = lamella.stack(places) if places else self._places[:, : unique.size(0)]
        return SparseTensor(found, stored, self.shape, None, True)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """All elements; those that are not stored are 0."""
        zeros = lamella.zeros(self.shape, dtype=self.dtype, device=self.device)
        places = tuple(self._coordinates().unbind(0))
        dense = (
            zeros.index_put(places, self._stored, accumulate=True)
            if places
            else zeros.add(self._stored.sum(0, dtype=self.dtype))
        )
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
        if layout in (lamella.sparse_csr,):
            return self.to_sparse_csr()
        if self._crow is None:
            return self
        return SparseTensor(self._coordinates(), self._stored, self.shape, None, True)

    def to_sparse_coo(self) -> SparseTensor:
        return self.to_sparse()

    def to_sparse_csr(self) -> SparseTensor:
        if self._crow is not None:
            return self
        check(
            "to_sparse_csr",
            self.dim() == 2 and self.sparse_dim() == 2,
            f"a matrix, got a tensor of shape {list(self.shape)}",
        )
        own = self.coalesce()
        rows = lamella.arange(self.shape[0] + 1, device=self.device)
        crow = lamella.searchsorted(own._places[0].contiguous(), rows)
        return SparseTensor(own._places[1], own._stored, self.shape, crow)

    # ---- Shapes: lamella._sparse_shapes ----------------------------------------------------------

    def permute(self, *dims: Any) -> SparseTensor:
        order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        return _shapes().permute(self, order)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        return _shapes().transpose(self, dim0, dim1)

    def t(self) -> SparseTensor:
        check("t", self.dim() == 2, f"a matrix, got a tensor of shape {list(self.shape)}")
        return self.transpose(0, 1)

    T = property(t)

    @property
    def mT(self) -> SparseTensor:  # noqa: N802
        return self.transpose(-2, -1)

    def unsqueeze(self, dim: int) -> SparseTensor:
        return _shapes().unsqueeze(self, dim)

    def index_select(self, dim: int, index: Tensor) -> SparseTensor:
        return _shapes().index_select(self, dim, index)

    def select(self, dim: int, index: int) -> Any:
        return _shapes().select(self, dim, index)

    def narrow(self, dim: int, start: int, length: int) -> SparseTensor:
        return _shapes().narrow(self, dim, start, length)

    narrow_copy = narrow

    def __getitem__(self, index: Any) -> Any:
        return _shapes().subscript(self, index)

    def __len__(self) -> int:
        check("len", self.dim() > 0, "a tensor with dimensions, got one without")
        return int(self.shape[0])

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        return _functions().sparse_mask(self, mask)

    # ---- Arithmetic ------------------------------------------------------------------------------

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """The sum: sparse with a sparse tensor of the same shape, dense with a dense one."""
        if isinstance(other, Tensor):
            return other.mul(alpha).add(self.to_dense())
        check("add", isinstance(other, SparseTensor), f"a tensor, got {type(other).__name__}")
        check(
            "add",
            tuple(other.shape) == tuple(self.shape),
            f"'other' of shape {list(self.shape)}, got {list(other.shape)}",
        )
        mine, theirs = self.to_sparse(), other.to_sparse()
        check(
            "add",
            mine.sparse_dim() == theirs.sparse_dim(),
            f"'other' with {mine.sparse_dim()} sparse dimensions, got {theirs.sparse_dim()}",
        )
        joined = SparseTensor(
            lamella.cat([mine._places, theirs._places], 1),
            lamella.cat([mine._stored, theirs._stored.mul(alpha)]),
            self.shape,
        )
        return joined.to_sparse_csr() if self._crow is not None else joined.coalesce()

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        return self.add(other, alpha=-alpha)

    def mul(self, other: Any) -> SparseTensor:
        """The product with a number or a tensor: at the places that this one stores."""
        if isinstance(other, SparseTensor):
            other = other.to_dense()
        if isinstance(other, Tensor) and other.dim() > 0:
            own = self.coalesce()
            shape = [max(a, b) for a, b in zip(other.shape[::-1], self.shape[::-1])]
            check(
                "mul",
                other.dim() <= self.dim() and shape == list(self.shape[::-1][: other.dim()]),
                f"'other' to be broadcastable to {list(self.shape)}, got {list(other.shape)}",
            )
            picked = other.expand(self.shape)[tuple(own._coordinates().unbind(0))]
            return own._with(own._stored.mul(picked))
        return self._with(self._stored.mul(other))

    def div(self, other: Any) -> SparseTensor:
        check(
            "div",
            not isinstance(other, SparseTensor)
            and (not isinstance(other, Tensor) or not other.dim()),
            "'other' to be a number",
        )
        return self._with(self._stored.div(other))

    def sum(self, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        """The sum of all elements, or over dimensions: sparse where sparse ones are left."""
        check("sum", not keepdim, "'keepdim' to be False")
        return _functions().sum(self, dim, dtype)

    def mm(self, mat2: Any) -> Any:
        return _functions().mm(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        return _functions().mv(self, vec)

    def bmm(self, mat2: Tensor) -> Tensor:
        return _functions().bmm(self, mat2)

    def matmul(self, other: Any) -> Any:
        return _functions().matmul(self, other)

    def pow(self, exponent: Any) -> SparseTensor:
        check(
            "pow",
            not isinstance(exponent, (Tensor, SparseTensor)) and exponent > 0,
            "'exponent' to be a number above 0, which leaves zeros as they are",
        )
        own = self.coalesce()
        return own._with(own._stored.pow(exponent))

    def norm(self, p: Any = 2) -> Tensor:
        """The norm of all elements."""
        return lamella.linalg.vector_norm(self.coalesce()._stored, 2 if p == "fro" else p)

    def __radd__(self, other: Any) -> Any:
        return self.add(other)

    def __rsub__(self, other: Any) -> Any:
        return (-self).add(other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _functions().matmul(other, self)

    def __pow__(self, exponent: Any) -> SparseTensor:
        return self.pow(exponent)

    def __add__(self, other: Any) -> Any:
        return self.add(other)

    def __sub__(self, other: Any) -> Any:
        return self.sub(other)

    def __mul__(self, other: Any) -> SparseTensor:
        return self.mul(other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        return _functions().matmul(self, other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.div(other)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._stored)

    def __repr__(self) -> str:
        names = ("indices", "values") if self._crow is None else ("crow_indices", "col_indices")
        parts = (self._places,) if self._crow is None else (self._crow, self._places)
        shown = [f"{name}={part}" for name, part in zip(names, parts)]
        return (
            f"sparse_tensor({', '.join(shown)}, values={self._stored}, size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout={self.layout})"
        )


def _unary(name: str) -> Any:
    def function(self: SparseTensor) -> SparseTensor:
        own = self.coalesce()
        return own._with(getattr(own._stored, name)())

    function.__name__ = name
    function.__doc__ = f"`{name}` of what is stored; it leaves zeros as they are."
    return function


def _cast(name: str) -> Any:
    def function(self: SparseTensor) -> SparseTensor:
        return self._with(getattr(self._stored, name)())

    function.__name__ = name
    function.__doc__ = f"With values as Tensor.{name} gives them."
    return function


for _name in _ZEROS_STAY:
    setattr(SparseTensor, _name, _unary(_name))
for _name in ("bfloat16", "bool", "double", "float", "half", "int", "long", "short"):
    setattr(SparseTensor, _name, _cast(_name))
