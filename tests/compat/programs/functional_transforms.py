"""Transforms of networks: gradients for each example, ensembles, Jacobians, neural tangent kernels,
and differentiated training steps."""

import copy

import torch
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from torch.nn import functional as F

torch.manual_seed(0)


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 9, 5),
    )


net = network()
images, labels = torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))
weights = {name: value.detach() for name, value in net.named_parameters()}


def logits(weights, image):
    return functional_call(net, weights, (image[None],))[0]


def loss(weights, image, label):
    return F.cross_entropy(logits(weights, image)[None], label[None])


# Gradients of each example, which add up to those of the batch.
each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
F.cross_entropy(net(images), labels, reduction="sum").backward()
for name, value in net.named_parameters():
    print(name, tuple(each[name].shape), each[name].norm().item())
    assert torch.allclose(each[name].sum(0), value.grad, atol=1e-4)

# Several networks as one.
several = [network() for _ in range(3)]
stacked, buffers = stack_module_state(several)
skeleton = copy.deepcopy(several[0]).to("meta")
together = vmap(lambda w, b, x: functional_call(skeleton, (w, b), (x,)), in_dims=(0, 0, None))
made = together(stacked, buffers, images)
assert torch.allclose(made, torch.stack([one(images) for one in several]), atol=1e-5)
print(made.norm().item())

# Jacobians both ways, and second derivatives.
matrix, shift, point = torch.randn(4, 4), torch.randn(4), torch.randn(4)


def layer(matrix, shift, x):
    return torch.tanh(F.linear(x, matrix, shift))


reverse = jacrev(layer, argnums=(0, 1, 2))(matrix, shift, point)
forward = jacfwd(layer, argnums=(0, 1, 2))(matrix, shift, point)
for one, other in zip(reverse, forward):
    assert torch.allclose(one, other, atol=1e-5)
    print(one.norm().item())
print(hessian(layer, argnums=2)(matrix, shift, point))
print(vmap(jacrev(layer, argnums=2), (None, None, 0))(matrix, shift, torch.randn(3, 4)))
value, pull = vjp(lambda x: layer(matrix, shift, x), point)
print(value, vmap(pull)(torch.eye(4))[0])
print(jvp(lambda x: layer(matrix, shift, x), (point,), (torch.ones(4),)))


# The neural tangent kernel from Jacobians, and from products with vectors.
def kernel(left, right):
    rows = [vmap(jacrev(logits), (None, 0))(weights, batch) for batch in (left, right)]
    parts = [
        torch.einsum("iap,jbp->ijab", rows[0][name].flatten(2), rows[1][name].flatten(2))
        for name in weights
    ]
    return sum(parts)


def kernel_by_products(one, other):
    _, pull = vjp(lambda w: logits(w, one), weights)

    def column(unit):
        return jvp(lambda w: logits(w, other), (weights,), pull(unit))[1]

    return vmap(column)(torch.eye(5))


whole = kernel(images[:2], images[2:4])
print(whole)
assert torch.allclose(whole[1, 0], kernel_by_products(images[1], images[2]), atol=1e-3)


# Gradients through a step of gradient descent, for many tasks at once.
def after_a_step(start, slope):
    x = torch.linspace(-1, 2, 5)
    error = lambda w: ((w[0] * x + w[1] - slope * x) ** 2).mean()  # noqa: E731
    return error(start - 0.1 * grad(error)(start))


print(grad(lambda w: vmap(after_a_step, (None, 0))(w, torch.arange(3.0)).mean())(torch.ones(2)))
