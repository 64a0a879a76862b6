"""Times of a training step of published programs, in ms: the smallest of several, on one core.

Run it with each of the two, where the packages are installed:
    python bench/published.py
    python -m lamella.compat bench/published.py
"""

import os
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LAMELLA_NUM_THREADS", "1")

import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def transformer(name, **options):
    import transformers

    sizes = dict(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, vocab_size=1000)
    sizes |= dict(intermediate_size=512, max_position_embeddings=128)
    config = getattr(transformers, f"{name}Config")(**(options or sizes))
    return getattr(transformers, f"{name}{HEADS[name]}")(config)


HEADS = {"GPT2": "LMHeadModel", "Bert": "ForMaskedLM", "Llama": "ForCausalLM"}
GPT2 = dict(n_embd=128, n_layer=4, n_head=4, vocab_size=1000)


def language(name, **options):
    ids = torch.randint(0, 1000, (4, 64))
    model = transformer(name, **options)
    return model, lambda: model(input_ids=ids, labels=ids).loss


def diffusion():
    import diffusers

    model = diffusers.UNet2DModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    images, steps = torch.randn(4, 3, 16, 16), torch.tensor([1, 2, 3, 4])
    return model, lambda: (model(images, steps).sample - images).square().mean()


def process():
    import gpytorch

    x = torch.linspace(0, 1, 100)
    y = torch.sin(6 * x)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Exact(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Exact()
    score = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return model, lambda: -score(model(x), y)


def graphs():
    from torch_geometric.nn import GCN

    model = GCN(16, 64, 3, 4)
    x, edges = torch.randn(500, 16), torch.randint(0, 500, (2, 3000))
    labels = torch.randint(0, 4, (500,))
    return model, lambda: torch.nn.functional.cross_entropy(model(x, edges), labels)


def equation():
    from torchdiffeq import odeint

    model = torch.nn.Sequential(torch.nn.Linear(2, 50), torch.nn.Tanh(), torch.nn.Linear(50, 2))
    start, times = torch.randn(32, 2), torch.linspace(0, 1, 5)
    return model, lambda: odeint(lambda t, y: model(y), start, times, method="rk4").square().mean()


def recurrent():
    model = torch.nn.LSTM(32, 64, 2)
    x = torch.randn(30, 16, 32)
    return model, lambda: model(x)[0].square().mean()


PROGRAMS = {
    "transformers: GPT-2": lambda: language("GPT2", **GPT2),
    "transformers: BERT": lambda: language("Bert"),
    "transformers: Llama": lambda: language("Llama"),
    "diffusers: U-Net": diffusion,
    "gpytorch: exact regression": process,
    "torch-geometric: GCN": graphs,
    "torchdiffeq: rk4": equation,
    "an LSTM": recurrent,
}

for name, make in PROGRAMS.items():
    if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
        continue
    torch.manual_seed(0)
    model, loss_of = make()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best, end = float("inf"), time.perf_counter() + 3
    while time.perf_counter() < end:
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
        best = min(best, time.perf_counter() - begin)
    print(f"{name}\t{best * 1e3:.2f}", flush=True)
