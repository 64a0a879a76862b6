# packages: vector_quantize_pytorch==1.32.0, einx==0.4.3, frozendict==2.5.1, einops==0.8.2
# packages: torch-einops-utils==0.2.0, loguru==0.7.3
"""Codebooks: eight kinds of quantization, two training steps each."""

import torch
import vector_quantize_pytorch as vq

torch.manual_seed(0)
kinds = [
    (vq.VectorQuantize(16, codebook_size=12, kmeans_init=True, kmeans_iters=3), (2, 20, 16)),
    (vq.ResidualVQ(dim=16, num_quantizers=3, codebook_size=12, shared_codebook=True), (2, 20, 16)),
    (vq.GroupedResidualVQ(dim=16, num_quantizers=2, groups=2, codebook_size=12), (2, 20, 16)),
    (vq.FSQ(levels=[5, 4, 3]), (2, 20, 3)),
    (vq.LFQ(codebook_size=16, dim=4, entropy_loss_weight=0.1), (1, 4, 6, 6)),
    (vq.ResidualFSQ(dim=16, levels=[5, 3], num_quantizers=2), (2, 20, 16)),
    (vq.SimVQ(dim=16, codebook_size=12), (2, 20, 16)),
    (vq.LatentQuantize(levels=[5, 5, 8], dim=9), (1, 9, 6, 6)),
]
for quantizer, shape in kinds:
    x = torch.randn(*shape, requires_grad=True)
    optimizer = torch.optim.Adam([x, *quantizer.parameters()], lr=0.01)
    for _ in range(2):
        out = quantizer(x)
        losses = [part.float().square().mean() for part in out if part.requires_grad]
        sum(losses).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(type(quantizer).__name__, out[0].sum(), out[1].flatten()[:8], x.sum())
