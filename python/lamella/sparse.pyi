# Types of lamella.sparse.
from lamella._sparse import *  # noqa: F403
from lamella._sparse_functions import addmm as addmm
from lamella._sparse_functions import log_softmax as log_softmax
from lamella._sparse_functions import mm as mm
from lamella._sparse_functions import sampled_addmm as sampled_addmm
from lamella._sparse_functions import softmax as softmax
from lamella._sparse_functions import sum as sum
from lamella._sparse_making import spdiags as spdiags
from lamella._sparse_tensor import SparseTensor as SparseTensor
