# packages: linear-operator==0.6.1, jaxtyping==0.3.11, wadler-lindig==0.1.8
"""Structured matrices that answer for operators by __torch_function__."""

import torch
from linear_operator.operators import (
    DenseLinearOperator,
    DiagLinearOperator,
    KroneckerProductLinearOperator,
    ToeplitzLinearOperator,
)

torch.manual_seed(0)
a = torch.randn(4, 4)
spd = DenseLinearOperator(a @ a.T + 4 * torch.eye(4))
diag = DiagLinearOperator(torch.tensor([1.0, 2.0, 3.0, 4.0]))
right = torch.randn(4, 2)
print((spd + diag) @ right, torch.matmul(diag, right), (spd + diag).to_dense())
print(spd.solve(right), torch.linalg.solve(diag, right), spd.logdet(), diag.logdet())
print(KroneckerProductLinearOperator(diag, spd).diagonal(), torch.diagonal(spd, 0, -1, -2))
toeplitz = ToeplitzLinearOperator(torch.tensor([3.0, 1.0, 0.5, 0.1]))
print(toeplitz @ right, toeplitz.inv_quad_logdet(right, logdet=True))
print(torch.linalg.cholesky(spd).to_dense(), spd[1:3, :2].to_dense(), spd.mT.shape)
