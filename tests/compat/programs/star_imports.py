"""`from ... import *` of PyTorch's modules."""

import torch
from torch import *  # noqa: F403
from torch.nn import *  # noqa: F403
from torch.nn.functional import *  # noqa: F403
from torch.optim import *  # noqa: F403

print(
    "Conv2d" in globals(), "conv2d" in globals(), "sigmoid" in globals(), "threshold_" in globals()
)
x = ones(2, 3)  # noqa: F405
print(sum(x, dim=0), cat([x, zeros(1, 3)]).shape, float32, tanh(x)[0, 0] == tanh(x)[0, 1])  # noqa: F405
net = Sequential(Linear(3, 4), ReLU(), Dropout(0.0), LSTMCell(4, 2))  # noqa: F405
print([type(part).__name__ for part in net], issubclass(Linear, Module))  # noqa: F405
print(relu(x - 2), conv1d(x[None], ones(1, 2, 2)), cross_entropy(x, tensor([0, 1])))  # noqa: F405
print(init.ones_(Parameter(zeros(2))).data, utils.parameters_to_vector([x]).shape)  # noqa: F405
print(type(Adam(net.parameters())).__name__, type(SGD(net.parameters(), lr=1)).__name__)  # noqa: F405
names = torch.nn.functional.__dict__.keys() & {"linear", "relu", "softmax", "dropout", "embedding"}
print(sorted(names), "conv2d" in dir(torch.nn.functional), "Linear" in dir(torch.nn))
