from lamella._sparse import *  # noqa: F403
from lamella._sparse_tensor import SparseTensor as SparseTensor
from lamella._sparse_tensor import addmm as addmm
from lamella._sparse_tensor import mm as mm
from lamella._sparse_tensor import sampled_addmm as sampled_addmm
from lamella._sparse_tensor import sum as sum
