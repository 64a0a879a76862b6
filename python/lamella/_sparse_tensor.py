"""SparseTensor: sparse layouts that are implemented with dense operators.

A SparseTensor holds dense tensors of the indices of its elements (`sparse_coo`: a matrix of
coordinates; `sparse_csr`: where each row begins, and columns; `sparse_csc`: the same by columns;
`sparse_bsr` and `sparse_bsc`: the same with blocks for elements) and of their values. Its functions
call operators on these, so autograd of any order and mode works through the values: `x.to_sparse()`
gathers from `x`, `to_dense` scatters into zeros, and a product gathers rows of its dense operand.
Elements that are not stored get no gradient.
"""

# The methods accept fewer forms of arguments than the overloads of Tensor that they override.
# mypy: disable-error-code="override"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import _C, Tensor

__all__ = ["SparseTensor"]

# Functions that map 0 to 0, so that applying them to the stored elements is enough.
_ZEROS_STAY = (
    "abs", "absolute", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan", "atanh",
    "ceil", "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan",
    "isneginf", "isposinf", "log1p", "nan_to_num", "neg", "negative", "positive", "rad2deg", "relu",
    "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip

_BY_COLUMNS = (lamella.sparse_csc, lamella.sparse_bsc)
_OF_BLOCKS = (lamella.sparse_bsr, lamella.sparse_bsc)


# Makes calls look for __torch_function__ of their arguments, which SparseTensor implements.
_C._switch_torch_function(True)


def check(function: str, condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(f"{function}: expected {text}")


def _strides(sizes: Sequence[int]) -> list[int]:
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step *= size
    return steps[::-1]


# The modules of these functions import this one, so they are reached through lamella.sparse, which
# is loaded on first use.
def _functions() -> Any:
    module: Any = lamella.sparse
    return module._sparse_functions


def _shapes() -> Any:
    module: Any = lamella.sparse
    return module._sparse_shapes


def _written() -> Any:
    module: Any = lamella.sparse
    return module._sparse_written


class SparseTensor(Tensor):
    """A tensor that stores only some of its elements or slices. For operators without a method here
    or a function in lamella.sparse use `x.to_dense()`."""

    _places: Tensor
    _stored: Tensor
    _crow: Tensor | None
    _coalesced: bool

    def __new__(
        cls,
        places: Tensor,
        stored: Tensor,
        shape: Sequence[int],
        crow: Tensor | None = None,
        coalesced: bool = False,
        layout: Any = None,
    ) -> SparseTensor:
        """places: coordinates [sparse dimensions, elements]; with `crow` the columns (rows, for
        layouts by columns) [elements]. crow: the bounds of the rows (columns). layout: with `crow`
        by default `sparse_csr`."""
        if crow is None:
            layout = lamella.sparse_coo
        elif layout is None:
            layout = lamella.sparse_csr
        self: SparseTensor = _C._make_wrapper_subclass(
            cls, shape, dtype=stored.dtype, layout=layout, device=stored.device
        )
        self._places, self._stored, self._crow = places, stored, crow
        self._coalesced = coalesced or crow is not None
        return self

    # This class implements the function even if other arguments override it: decision 34.
    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _functions().answer(function.__name__, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _functions().answer(function.overloadpacket.__name__, args, kwargs or {})

    # ---- Attributes and conversions --------------------------------------------------------------

    @property
    def is_sparse(self) -> bool:
        return self._crow is None

    @property
    def is_sparse_csr(self) -> bool:
        return bool(self.layout == lamella.sparse_csr)

    @property
    def requires_grad(self) -> bool:
        return self._stored.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._stored.requires_grad = value

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values, as a sparse tensor with the same indices."""
        return None if self._stored.grad is None else self._with(self._stored.grad)

    @grad.setter
    def grad(self, value: SparseTensor | None) -> None:
        if value is not None:
            check("grad", isinstance(value, SparseTensor), "a sparse tensor")
            check("grad", value.layout == self.layout, f"layout {self.layout}, got {value.layout}")
        self._stored.grad = None if value is None else value._stored

    def sparse_dim(self) -> int:
        return int(self._places.size(0)) if self._crow is None else 2

    def dense_dim(self) -> int:
        return self._stored.dim() - (3 if self.layout in _OF_BLOCKS else 1)

    _dimI = sparse_dim  # noqa: N815
    _dimV = dense_dim  # noqa: N815

    def _nnz(self) -> int:
        return int(self._stored.size(0))

    def is_coalesced(self) -> bool:
        self._is_coo("is_coalesced")
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        self._coalesced = coalesced
        return self

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._stored.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._stored.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._stored.grad_fn

    def retain_grad(self) -> None:
        self._stored.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Calls hook(gradient) with a sparse gradient; its result, unless None, replaces that."""

        def of_values(grad: Tensor) -> Any:
            found = hook(self._with(grad))
            return found._stored if isinstance(found, SparseTensor) else found

        return self._stored.register_hook(of_values)

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        lamella.autograd.backward(self, gradient, *args, **kwargs)

    def is_same_size(self, other: Any) -> bool:
        return tuple(self.shape) == tuple(other.shape)

    def stride(self, dim: int | None = None) -> Any:
        """0 for each dimension, since the elements of a sparse tensor have no strides."""
        return 0 if dim is not None else (0,) * self.dim()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def detach(self) -> SparseTensor:
        return self._with(self._stored.detach())

    @property
    def data(self) -> SparseTensor:
        return self.detach()

    @data.setter
    def data(self, value: SparseTensor) -> None:
        requires_grad = self.requires_grad
        header: Any = Tensor.__dict__["data"]  # sets shape, dtype and layout
        header.__set__(self, value)
        self._take(value.detach().requires_grad_(requires_grad))

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        crow = None if self._crow is None else self._crow.clone()
        return self._of(self._places.clone(), self._stored.clone(), crow)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Converts the values' dtype and moves all parts to a device, as Tensor.to does."""
        stored = self._stored.to(*args, **kwargs)
        if stored is self._stored:
            return self
        crow = None if self._crow is None else self._crow.to(stored.device)
        return self._of(self._places.to(stored.device), stored, crow)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is not None:
            return self._with(self._stored.type(dtype))
        self._is_coo("type")
        return str(self._stored.type()).replace(".", ".sparse.", 1)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> SparseTensor:
        return self.to(device)

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"numpy: expected a dense tensor, got one of {self.layout}: to_dense() it")

    def tolist(self) -> Any:
        return self.to_dense().tolist()

    def _as_parameter(self, requires_grad: bool) -> SparseTensor:
        module: Any = lamella.sparse
        made: SparseTensor = module._sparse_parameter.SparseParameter(self, requires_grad)
        return made

    def _of(self, places: Tensor, stored: Tensor, crow: Tensor | None) -> SparseTensor:
        return SparseTensor(places, stored, self.shape, crow, self._coalesced, self.layout)

    def _with(self, stored: Tensor) -> SparseTensor:
        return self._of(self._places, stored, self._crow)

    # ---- Indices and values ----------------------------------------------------------------------

    def _is_coo(self, function: str) -> None:
        check(
            function,
            self._crow is None,
            f"a tensor of layout {lamella.sparse_coo}, got {self.layout}",
        )

    def _is_compressed(self, function: str, by_columns: bool) -> None:
        names = _BY_COLUMNS if by_columns else (lamella.sparse_csr, lamella.sparse_bsr)
        check(
            function,
            self.layout in names,
            f"a tensor of layout {names[0]} or {names[1]}, got {self.layout}",
        )

    def indices(self) -> Tensor:
        self._is_coo("indices")
        check("indices", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._places

    def values(self) -> Tensor:
        check("values", self._coalesced, "a coalesced tensor, got one that is not: coalesce() it")
        return self._stored

    def _indices(self) -> Tensor:
        self._is_coo("_indices")
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def crow_indices(self) -> Tensor:
        self._is_compressed("crow_indices", False)
        return self._crow  # type: ignore[return-value]

    def col_indices(self) -> Tensor:
        self._is_compressed("col_indices", False)
        return self._places

    def ccol_indices(self) -> Tensor:
        self._is_compressed("ccol_indices", True)
        return self._crow  # type: ignore[return-value]

    def row_indices(self) -> Tensor:
        self._is_compressed("row_indices", True)
        return self._places

    def _coordinates(self) -> Tensor:
        """Coordinates [sparse dimensions, elements]; for layouts of blocks, block coordinates."""
        if self._crow is None:
            return self._places
        lines = lamella.arange(self._crow.size(0) - 1, device=self.device)
        outer = lines.repeat_interleave(self._crow.diff())
        inner = self._places.to(lamella.int64)
        return lamella.stack([inner, outer] if self.layout in _BY_COLUMNS else [outer, inner])

    # ---- In place: lamella._sparse_written -------------------------------------------------------

    def _take(self, other: SparseTensor) -> SparseTensor:
        self._places, self._stored, self._crow = other._places, other._stored, other._crow
        self._coalesced = other._coalesced
        return self

    def add_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        return _written().add_(self, other, alpha)

    def sub_(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        return _written().add_(self, other, -alpha)

    def mul_(self, other: Any) -> SparseTensor:
        return _written().mul_(self, other)

    def div_(self, other: Any) -> SparseTensor:
        return _written().div_(self, other)

    def zero_(self) -> SparseTensor:
        """Removes all stored elements."""
        return _written().zero_(self)

    def copy_(self, other: Any, non_blocking: bool = False) -> SparseTensor:
        return _written().copy_(self, other)

    def resize_as_(self, other: Any, *, memory_format: Any = None) -> SparseTensor:
        return _written().resize_as_(self, other)

    def detach_(self) -> SparseTensor:
        self._stored = self._stored.detach()
        return self

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = true_divide_ = div_

    # ---- Conversions between layouts -------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted, unique indices; values of repeated indices are summed."""
        if self._coalesced:
            return self
        self._is_coo("coalesce")
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

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor; elements that are not stored are 0."""
        if self.layout in _OF_BLOCKS:
            return self.to_sparse().to_dense(dtype)
        zeros = lamella.zeros(self.shape, dtype=self.dtype, device=self.device)
        places = tuple(self._coordinates().unbind(0))
        dense = (
            zeros.index_put(places, self._stored, accumulate=True)
            if places
            else zeros.add(self._stored.sum(0, dtype=self.dtype))
        )
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
    ) -> SparseTensor:
        """The same elements in another layout, by default `sparse_coo`."""
        if layout is not None and layout != lamella.sparse_coo:
            return _shapes().compressed(self, layout, blocksize)
        if self._crow is None:
            return self
        if self.layout in _OF_BLOCKS:
            return _shapes().without_blocks(self)
        found = SparseTensor(self._coordinates(), self._stored, self.shape)
        found._coalesced = self.layout == lamella.sparse_csr
        return found if found._coalesced else found.coalesce()

    def to_sparse_coo(self) -> SparseTensor:
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseTensor:
        return _shapes().compressed(self, lamella.sparse_csr)

    def to_sparse_csc(self, dense_dim: int | None = None) -> SparseTensor:
        return _shapes().compressed(self, lamella.sparse_csc)

    def to_sparse_bsr(self, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
        return _shapes().compressed(self, lamella.sparse_bsr, blocksize)

    def to_sparse_bsc(self, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
        return _shapes().compressed(self, lamella.sparse_bsc, blocksize)

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

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        return _functions().sparse_mask(self, mask)

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        return _written().sparse_resize_(self, size, sparse_dim, dense_dim, False)

    def sparse_resize_and_clear_(
        self, size: Sequence[int], sparse_dim: int, dense_dim: int
    ) -> SparseTensor:
        return _written().sparse_resize_(self, size, sparse_dim, dense_dim, True)

    # ---- Arithmetic: lamella._sparse_functions ---------------------------------------------------

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        return _functions().add(self, other, alpha=alpha)

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        return _functions().add(self, other, alpha=-alpha)

    def mul(self, other: Any) -> SparseTensor:
        return _functions().mul(self, other)

    def div(self, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
        return _functions().div(self, other, rounding_mode=rounding_mode)

    def floor_divide(self, other: Any) -> SparseTensor:
        return _functions().div(self, other, rounding_mode="floor")

    def pow(self, exponent: Any) -> SparseTensor:
        return _functions().pow(self, exponent)

    def sum(self, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        """The sum of all elements, or over dimensions: sparse if sparse dimensions remain."""
        return _functions().sum(self, dim, dtype, keepdim)

    def any(self) -> Tensor:
        return self.coalesce()._stored.any()

    def norm(self, p: Any = 2) -> Tensor:
        """The norm of all elements."""
        return lamella.linalg.vector_norm(self.coalesce()._stored, 2 if p == "fro" else p)

    def mm(self, mat2: Any) -> Any:
        return _functions().mm(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        return _functions().mv(self, vec)

    def bmm(self, mat2: Tensor) -> Tensor:
        return _functions().bmm(self, mat2)

    def matmul(self, other: Any) -> Any:
        return _functions().matmul(self, other)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Any:
        return _functions().matmul(other, self)

    def __rsub__(self, other: Any) -> Any:
        return (-self).add(other)

    __add__ = __radd__ = add
    __sub__ = sub
    __mul__ = __rmul__ = mul
    __truediv__ = true_divide = div
    __floordiv__ = floor_divide
    __pow__ = pow

    def __neg__(self) -> SparseTensor:
        return self._with(-self._stored)

    def __abs__(self) -> SparseTensor:
        return self._with(self._stored.abs()) if self._coalesced else abs(self.coalesce())

    # ---- Printing, pickling and copying: lamella._sparse_text ------------------------------------

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        module: Any = lamella.sparse
        text: str = module._sparse_text.text(self)
        return text

    def __reduce_ex__(self, protocol: Any) -> Any:
        module: Any = lamella.sparse
        return module._sparse_text.rebuild, module._sparse_text.parts(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) not in memo:
            check("deepcopy", self.is_leaf, "a leaf, got a computed tensor: detach().clone() it")
            made = self.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = made
            if self.grad is not None:
                made.grad = self.grad.clone()
        return memo[id(self)]

    def __copy__(self) -> SparseTensor:
        return self._with(self._stored)


def _unary(name: str) -> Any:
    def function(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        own = self.coalesce() if self._crow is None else self
        return own._with(getattr(own._stored, name)(*args, **kwargs))

    function.__name__ = name
    function.__doc__ = f"`{name}` of the stored elements; it maps 0 to 0."
    return function


def _cast(name: str) -> Any:
    def function(self: SparseTensor) -> SparseTensor:
        return self._with(getattr(self._stored, name)())

    function.__name__ = name
    function.__doc__ = f"The tensor with its values converted by Tensor.{name}()."
    return function


def _in_place(name: str) -> Any:
    def function(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return _written().written(self, getattr(self, name)(*args, **kwargs))

    function.__name__ = name + "_"
    function.__doc__ = f"`{name}` in place."
    return function


for _name in _ZEROS_STAY:
    setattr(SparseTensor, _name, _unary(_name))
    if hasattr(Tensor, _name + "_"):
        setattr(SparseTensor, _name + "_", _in_place(_name))
for _name in ("bfloat16", "bool", "char", "double", "float", "half", "int", "long", "short"):
    setattr(SparseTensor, _name, _cast(_name))
