"""Functions of sparse tensors, which `lamella.sparse_coo_tensor`, `lamella.sparse_csr_tensor` and
`Tensor.to_sparse` make."""

from lamella import _C
from lamella._sparse_tensor import SparseTensor, addmm, mm, sampled_addmm, sum  # noqa: A004, F401

globals().update(_C._functions("sparse"))
