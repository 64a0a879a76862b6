"""The array API standard, version 2025.12: the namespace that Tensor.__array_namespace__() returns.

Names and behavior follow the standard. docs/array-api.md lists the differences from PyTorch
(`axis`, `keepdims`, the dtype of sums, promotion of arrays without dimensions).
"""

from lamella import (  # noqa: F401
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)
from lamella.array_api import _elementwise, fft, linalg  # noqa: F401
from lamella.array_api._creation import (  # noqa: F401
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from lamella.array_api._dtypes import (  # noqa: F401
    astype,
    bool,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from lamella.array_api._elementwise import clip, where  # noqa: F401
from lamella.array_api._info import __array_namespace_info__  # noqa: F401
from lamella.array_api._manipulation import (  # noqa: F401
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)
from lamella.array_api._reading import (  # noqa: F401
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    isin,
    max,
    mean,
    min,
    nonzero,
    prod,
    searchsorted,
    sort,
    std,
    sum,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
)
from lamella.array_api.linalg import matmul, tensordot, vecdot  # noqa: F401

__array_api_version__ = "2025.12"

globals().update(_elementwise.FUNCTIONS)

__all__ = [name for name in globals() if not name.startswith("_")]  # noqa: PLE0605
