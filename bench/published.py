"""Times published programs with PyTorch and Lamella: ms on one core, and the ratio of speeds.

    .venv/bin/python bench/published.py [NAME...]

First come training steps (forward, backward, Adam), each the smallest of many. Then come the
programs of tests/compat/packages, each several times in one process, so that imports and first
calls do not count. The packages are those that tests/compat/test_published.py installed.
"""

import os
import pathlib
import re
import subprocess
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "compat" / "packages"
FOLDER = ROOT / "build" / "compat_packages"
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "LAMELLA_NUM_THREADS", "MKL_NUM_THREADS"), "1")
REPEAT = """
import contextlib, os, sys, time
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec")
times = []
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    exec(code, {"__name__": "__main__"})
    while len(times) < 2 or sum(times) < 3:
        begin = time.process_time()
        exec(code, {"__name__": "__main__"})
        times.append(time.process_time() - begin)
print(min(times) * 1e3)
"""


# ---- Training steps: a model, and a function that gives its loss


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


# For each step the program of tests/compat/packages whose packages it needs, and its maker.
STEPS = {
    "GPT-2": ("transformers", lambda: language("GPT2", **GPT2)),
    "BERT": ("transformers", lambda: language("Bert")),
    "Llama": ("transformers", lambda: language("Llama")),
    "U-Net": ("diffusers", diffusion),
    "exact regression": ("gpytorch", process),
    "GCN": ("torch_geometric", graphs),
    "rk4": ("torchdiffeq", equation),
    "LSTM": ("torchdiffeq", recurrent),
}


def step(name):
    """Prints the smallest time of a step, of a process that has one of the two as torch."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of = STEPS[name][1]()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best, end = float("inf"), time.perf_counter() + 3
    while time.perf_counter() < end:
        begin = time.process_time()
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
        best = min(best, time.process_time() - begin)
    print(best * 1e3)


# ---- Both


def milliseconds(packages_of, start, command):
    needs = re.findall(r"^# packages: (.*)$", packages_of.read_text(), re.MULTILINE)
    folders = [FOLDER / need.replace("==", "-") for need in ", ".join(needs).split(", ")]
    missing = [folder.name for folder in folders if not folder.exists()]
    if missing:
        raise SystemExit(
            f"{packages_of.name}: run tests/compat/test_published.py first for {missing[0]}"
        )
    path = os.pathsep.join(map(str, folders))
    run = subprocess.run(
        [sys.executable, *start, *command],
        env=os.environ | ALONE | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"{command[-1]} with {start or 'torch'}: {run.stderr[-400:]}")
    return float(run.stdout.split()[-1])


def main(wanted):
    print("program\tPyTorch\tLamella\tratio")
    rows = [
        (f"{package}: {name}", PROGRAMS / f"use_{package}.py", [__file__, "--step", name])
        for name, (package, _) in STEPS.items()
    ]
    rows += [
        (program.stem[4:], program, ["-c", REPEAT, str(program)])
        for program in sorted(PROGRAMS.glob("use_*.py"))
    ]
    for name, packages_of, command in rows:
        if wanted and not any(word in name for word in wanted):
            continue
        theirs = milliseconds(packages_of, (), command)
        ours = milliseconds(packages_of, ("-m", "lamella.compat"), command)
        print(f"{name}\t{theirs:.2f}\t{ours:.2f}\t{theirs / ours:.2f}", flush=True)


if sys.argv[1:2] == ["--step"]:
    import torch

    step(sys.argv[2])
else:
    main(sys.argv[1:])
