"""lamella.sparse: functions of sparse tensors. Sparse tensors are made by
`lamella.sparse_coo_tensor`, `lamella.sparse_csr_tensor` and `Tensor.to_sparse`."""

from lamella import (  # noqa: F401
    _C,
    _missing,
    _sparse_functions,
    _sparse_gradients,
    _sparse_parameter,
    _sparse_shapes,
    _sparse_text,
    _sparse_written,
)
from lamella._sparse_functions import (  # noqa: F401
    addmm,
    log_softmax,
    mm,
    sampled_addmm,
    softmax,
    sum,  # noqa: A004
)
from lamella._sparse_making import spdiags  # noqa: F401
from lamella._sparse_tensor import SparseTensor  # noqa: F401

globals().update(_C._functions("sparse"))
_missing.suggest(__name__)
