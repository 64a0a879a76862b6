# packages: accelerate==1.15.0, psutil==7.2.2, huggingface_hub==2.4.0, httpx2==2.16.2
# packages: httpcore2==2.16.2, anyio==4.16.0, h11==0.16.0, idna==3.20, truststore==0.10.5
# packages: regex==2026.11.19
"""A training loop with accumulated gradients, and a network without memory."""

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed

set_seed(0)
a = Accelerator(cpu=True, gradient_accumulation_steps=2)
m = torch.nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.StepLR(o, 2)
d = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 4, shuffle=True
)
m, o, d, s = a.prepare(m, o, d, s)
for x, y in d:
    with a.accumulate(m):
        l = (m(x) - y).pow(2).mean()
        a.backward(l)
        a.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        s.step()
        o.zero_grad()
        print(l.item())
print(a.gather(l).item())
with init_empty_weights():
    e = torch.nn.Linear(10, 10)
print(e.weight.device, a.unwrap_model(m) is m)
