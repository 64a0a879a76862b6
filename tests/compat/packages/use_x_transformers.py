# packages: x-transformers==2.31.10, einops==0.8.2, einx==0.4.3, loguru==0.7.3
# packages: frozendict==2.5.1, torch-einops-utils==0.2.0
"""A language model with rotary positions, and an encoder, trained for a few steps."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.manual_seed(0)
model = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=40,
        max_seq_len=24,
        attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True),
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 40, (3, 24))
for _ in range(4):
    loss = model(tokens)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(loss.item())
print(model.generate(tokens[:1, :4], 6, temperature=0.0))
encoder = TransformerWrapper(
    num_tokens=40, max_seq_len=24, attn_layers=Encoder(dim=32, depth=1, heads=4, use_rmsnorm=True)
)
print(encoder(tokens, mask=torch.ones(3, 24).bool(), return_embeddings=True).mean(1)[:, :4])
