"""torch.functional: the functions that PyTorch implements in Python."""

from lamella import atleast_1d as atleast_1d
from lamella import atleast_2d as atleast_2d
from lamella import atleast_3d as atleast_3d
from lamella import block_diag as block_diag
from lamella import broadcast_shapes as broadcast_shapes
from lamella import broadcast_tensors as broadcast_tensors
from lamella import cartesian_prod as cartesian_prod
from lamella import cdist as cdist
from lamella import chain_matmul as chain_matmul
from lamella import einsum as einsum
from lamella import istft as istft
from lamella import lu as lu
from lamella import meshgrid as meshgrid
from lamella import norm as norm
from lamella import pca_lowrank as pca_lowrank
from lamella import split as split
from lamella import stft as stft
from lamella import svd_lowrank as svd_lowrank
from lamella import tensordot as tensordot
from lamella import unique as unique
from lamella import unique_consecutive as unique_consecutive
from lamella import unravel_index as unravel_index
