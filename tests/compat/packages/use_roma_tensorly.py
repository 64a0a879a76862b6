# packages: roma==1.8.0, tensorly==0.10.0, autoray==0.11.0, torchquad==0.6.0, loguru==0.7.3
# packages: tqdm==4.70.1
"""Rotations, decompositions of tensors, and integrals that choose their functions by the module of
what they are given."""

import numpy as np
import roma
import tensorly
import torch
import torchquad
from tensorly.decomposition import non_negative_parafac, parafac, tucker

torch.manual_seed(0)
quaternions = roma.random_unitquat(5)
rotations = roma.unitquat_to_rotmat(quaternions)
matrix = torch.randn(5, 3, 3, requires_grad=True)
found, determinant = roma.special_procrustes(matrix), torch.linalg.det(rotations)
found[:, 0].sum().backward()
print(rotations[0], determinant, found[0], matrix.grad[0])
print(
    roma.rotmat_to_rotvec(rotations),
    roma.unitquat_slerp(quaternions[0], quaternions[1], torch.tensor([0.5])),
)
rotation, shift = roma.rigid_points_registration(torch.randn(6, 3), torch.randn(6, 3))
print(rotation, shift)

tensorly.set_backend("pytorch")
x = tensorly.tensor(np.random.default_rng(0).random((4, 5, 6)))
weights, factors = parafac(x, 3, init="svd", n_iter_max=10)
print(weights, tensorly.norm(x - tensorly.cp_to_tensor((weights, factors))))
core, factors = tucker(x, (2, 3, 3), n_iter_max=5)
print(core.shape, tensorly.norm(x - tensorly.tucker_to_tensor((core, factors))))
print(non_negative_parafac(x, 2, init="svd", n_iter_max=5)[1][0])

torchquad.set_up_backend("torch", data_type="float32")
domain = [[0, 1], [-1, 1]]
for rule in (torchquad.Simpson(), torchquad.Boole()):
    made = rule.integrate(lambda x: torch.sin(x[:, 0]) + torch.exp(x[:, 1]), 2, 2601, domain)
    print(made)
print(torchquad.MonteCarlo().integrate(lambda x: x[:, 0] ** 2, 1, 1000, [[0, 1]], seed=3))
