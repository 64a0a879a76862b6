"""Training gives PyTorch's numbers, step by step."""

import pytest

import lamella

torch = pytest.importorskip("torch")


def mlp(package):
    return package.nn.Sequential(
        package.nn.Linear(64, 128), package.nn.ReLU(), package.nn.Linear(128, 10)
    )


def convolutional(package):
    return package.nn.Sequential(
        # A bias before batch normalisation has no gradient but noise.
        package.nn.Conv2d(1, 8, 3, padding=1, bias=False),
        package.nn.BatchNorm2d(8),
        package.nn.ReLU(),
        package.nn.MaxPool2d(2),
        package.nn.Flatten(),
        package.nn.Linear(128, 10),
    )


def losses(package, make, data, state, name, options, steps):
    net = make(package)
    net.load_state_dict(state)
    optimizer = getattr(package.optim, name)(net.parameters(), **options)
    loss_of = package.nn.CrossEntropyLoss()
    found = []
    for step in range(steps):
        images, labels = data[step % len(data)]
        optimizer.zero_grad()
        loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found, net


CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    ("Adam", {"lr": 1e-3}),
    ("AdamW", {"lr": 1e-3, "amsgrad": True}),
]


@pytest.mark.parametrize("name, options", CASES)
@pytest.mark.parametrize("make", [mlp, convolutional])
def test_losses_are_those_of_torch(make, name, options):
    torch.manual_seed(0)
    shape = (64, 64) if make is mlp else (16, 1, 8, 8)
    data = [(torch.randn(shape), torch.randint(0, 10, shape[:1])) for _ in range(5)]
    state = make(torch).state_dict()
    state = {key: value.clone() for key, value in state.items()}
    steps = 50 if make is mlp else 10
    wanted, their = losses(torch, make, data, state, name, options, steps)
    own = [(lamella.from_numpy(x.numpy()), lamella.from_numpy(y.numpy())) for x, y in data]
    own_state = {key: lamella.from_numpy(value.numpy()) for key, value in state.items()}
    found, mine = losses(lamella, make, own, own_state, name, options, steps)
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    assert wanted[-1] < wanted[0]
    for key, value in their.state_dict().items():
        near = pytest.approx(value.flatten().tolist(), rel=1e-3, abs=1e-4)
        assert mine.state_dict()[key].flatten().tolist() == near, key
