# packages: rotary-embedding-torch==0.9.1, einops==0.8.2
"""Rotary positions."""

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

torch.manual_seed(0)
rotary = RotaryEmbedding(dim=8)
q, k = torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16)
print(rotary.rotate_queries_or_keys(q)[0, 0, :3], rotary.rotate_queries_or_keys(k).sum((0, 1)))
axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=10)
frequencies = axial.get_axial_freqs(3, 4)
print(apply_rotary_emb(frequencies, torch.randn(1, 3, 4, 16)).mean((0, 3)))
