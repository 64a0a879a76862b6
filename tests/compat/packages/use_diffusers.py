# packages: diffusers==0.42.1, requests==2.34.2, urllib3==2.8.0, certifi==2026.10.19.post1
# packages: charset-normalizer==3.5.3, pillow==13.0.0, huggingface_hub==2.4.0, httpx2==2.16.2
# packages: httpcore2==2.16.2, anyio==4.16.0, h11==0.16.0, idna==3.20, truststore==0.10.5
# packages: regex==2026.11.19
"""Diffusion: a U-Net trained, five schedulers, a conditional U-Net, an autoencoder."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    PNDMScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)

torch.manual_seed(0)
u = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    norm_num_groups=8,
)
opt = torch.optim.AdamW(u.parameters(), 1e-3)
s = DDPMScheduler(num_train_timesteps=50)
for _ in range(3):
    x = torch.randn(2, 3, 16, 16)
    n = torch.randn_like(x)
    t = torch.randint(0, 50, (2,))
    loss = torch.nn.functional.mse_loss(u(s.add_noise(x, n, t), t).sample, n)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(u.parameters(), 1.0)
    opt.step()
    print(loss.item())
u.eval()
for S in (
    DDPMScheduler,
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    PNDMScheduler,
):
    torch.manual_seed(1)
    s = S(num_train_timesteps=50)
    s.set_timesteps(5)
    x = torch.randn(1, 3, 16, 16) * s.init_noise_sigma
    with torch.no_grad():
        for t in s.timesteps:
            xi = s.scale_model_input(x, t)
            x = s.step(u(xi, t).sample, t, x).prev_sample
    print(S.__name__, x.mean().item(), x.std().item())
torch.manual_seed(0)
c = UNet2DConditionModel(
    sample_size=16,
    in_channels=4,
    out_channels=4,
    layers_per_block=1,
    block_out_channels=(16, 32),
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=16,
    attention_head_dim=4,
    norm_num_groups=8,
)
o = c(torch.randn(2, 4, 16, 16), torch.tensor([3, 7]), torch.randn(2, 5, 16)).sample
(o**2).mean().backward()
print(o.mean().item(), sum(p.grad.abs().sum() for p in c.parameters()).item())
v = AutoencoderKL(
    block_out_channels=(16, 32),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=4,
    norm_num_groups=8,
)
o = v(torch.randn(1, 3, 16, 16), sample_posterior=True).sample
print(o.mean().item())
