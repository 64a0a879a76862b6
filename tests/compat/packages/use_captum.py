# packages: captum==0.9.0, tqdm==4.70.1, matplotlib==3.11.2, cycler==0.12.1, fonttools==4.68.0
# packages: kiwisolver==1.5.1, pyparsing==3.3.3, python-dateutil==4.0.0, pillow==13.0.0
"""Attributions: of inputs, of layers, of neurons, by gradients and by perturbation."""

import numpy as np
import torch
from captum import attr
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 49, 5)
)
flat = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
x, rows = torch.randn(2, 3, 16, 16), torch.randn(4, 6)


def show(name, found):
    found = found.detach().double()
    print(
        name, list(found.shape), round(found.abs().mean().item(), 6), round(found.sum().item(), 4)
    )


for kind in (
    attr.IntegratedGradients,
    attr.Saliency,
    attr.InputXGradient,
    attr.DeepLift,
    attr.GuidedBackprop,
    attr.Deconvolution,
):
    show(kind.__name__, kind(net).attribute(x, target=1))
for kind in (attr.GradientShap, attr.DeepLiftShap):
    torch.manual_seed(1)
    np.random.seed(1)  # chooses the baselines
    show(kind.__name__, kind(net).attribute(x, baselines=torch.zeros(2, 3, 16, 16), target=1))
show("LRP", attr.LRP(flat).attribute(rows, target=1))
for kind in (
    attr.LayerConductance,
    attr.LayerGradCam,
    attr.InternalInfluence,
    attr.LayerIntegratedGradients,
    attr.LayerDeepLift,
):
    show(kind.__name__, kind(net, net[0]).attribute(x, target=1))
show("NeuronGradient", attr.NeuronGradient(flat, flat[0]).attribute(rows, neuron_selector=2))
show("NeuronConductance", attr.NeuronConductance(flat, flat[0]).attribute(rows, 2, target=0))
occlusion = attr.Occlusion(net)
show("Occlusion", occlusion.attribute(x, (3, 4, 4), strides=(3, 4, 4), target=1))
masks = torch.arange(3).view(1, 3, 1, 1)
show("FeatureAblation", attr.FeatureAblation(net).attribute(x, target=1, feature_mask=masks))
torch.manual_seed(1)
show("ShapleyValueSampling", attr.ShapleyValueSampling(flat).attribute(rows, target=1, n_samples=5))
noise = attr.NoiseTunnel(attr.Saliency(flat))
torch.manual_seed(1)
show("NoiseTunnel", noise.attribute(rows, nt_samples=4, stdevs=0.1, target=1))
