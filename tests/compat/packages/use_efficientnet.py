# packages: efficientnet-pytorch==0.7.1
"""EfficientNet-B0: one step of training, then evaluation."""

import torch
from efficientnet_pytorch import EfficientNet
from torch import nn

torch.manual_seed(0)
model = EfficientNet.from_name(
    "efficientnet-b0", num_classes=5, dropout_rate=0.0, drop_connect_rate=0.0
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
loss = nn.functional.cross_entropy(model(images), labels)
loss.backward()
print(round(loss.item(), 4), round(model._fc.weight.grad.norm().item(), 4))
model.eval()
with torch.no_grad():
    features = model.extract_features(images)
print(features.shape, round(features.mean().item(), 3), sum(p.numel() for p in model.parameters()))
print(len(model.state_dict()), list(model.state_dict())[:3])
