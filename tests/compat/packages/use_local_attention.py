# packages: local-attention==1.11.2, einops==0.8.2, hyper-connections==0.4.11
# packages: torch-einops-utils==0.2.0
"""Attention of windows, and a transformer of it."""

import torch
from local_attention import LocalAttention, LocalTransformer

torch.manual_seed(0)
q, k, v = torch.randn(3, 1, 2, 64, 16).unbind(0)
attention = LocalAttention(dim=16, window_size=16, causal=True, look_backward=1)
print(attention(q, k, v, mask=torch.ones(1, 64).bool()).mean((1, 2))[0, :8])
model = LocalTransformer(
    num_tokens=30, dim=32, depth=1, max_seq_len=64, causal=True, local_attn_window_size=16
)
tokens = torch.randint(0, 30, (2, 64))
loss = model(tokens, return_loss=True)
loss.backward()
print(loss.item(), model.token_emb.weight.grad.norm().item())
