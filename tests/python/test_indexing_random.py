"""Random index expressions and assignments are those of NumPy, negative steps included."""

import random

import pytest

import lamella

np = pytest.importorskip("numpy")


def bound(rng, size):
    return rng.choice([None, rng.randint(-size - 2, size + 2)])


def random_item(rng, size, kinds):
    kind = rng.choice(kinds)
    if kind == "int" and size > 0:
        return rng.randint(-size, size - 1)
    if kind == "list" and size > 0:
        return [rng.randint(-size, size - 1) for _ in range(3)]
    if kind == "mask":
        return [rng.random() < 0.5 for _ in range(size)]
    step = rng.choice([None, 1, 2, 3, -1, -2, -3, 7, -7])
    return slice(bound(rng, size), bound(rng, size), step)


def random_key(rng, shape, advanced):
    """One key for some of the dimensions, with None and ... in between. At most one list or mask,
    beside which there is no int, as PyTorch and NumPy place their dimension differently."""
    kinds = ["slice", "slice", "int"]
    special = rng.randrange(len(shape)) if advanced and shape else -1
    if special >= 0:
        kinds = ["slice"]
    count = max(rng.randint(0, len(shape)), special + 1)
    key = [
        random_item(rng, shape[d], ["list", "mask"] if d == special else kinds)
        for d in range(count)
    ]
    if special < 0:
        at = rng.randint(0, len(key))
        if rng.random() < 0.3:
            key.insert(at, None)
        if rng.random() < 0.3 and count == len(shape):
            key.insert(rng.randint(0, len(key)), Ellipsis)
    return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


def of_numpy(key):
    """Lists of a tuple as NumPy's arrays, so that an empty mask is a mask."""
    if isinstance(key, tuple):
        return tuple(map(of_numpy, key))
    return (
        np.array(
            key,
            dtype=bool
            if not key or key[0] in (True, False) and isinstance(key[0], bool)
            else np.int64,
        )
        if isinstance(key, list)
        else key
    )


@pytest.mark.parametrize("seed", range(14))
def test_expressions(seed):
    rng = random.Random(seed)
    for _ in range(500):
        shape = tuple(
            rng.randint(0 if rng.random() < 0.1 else 1, 5) for _ in range(rng.randint(1, 4))
        )
        array = np.arange(int(np.prod(shape))).reshape(shape)
        key = of_numpy(random_key(rng, shape, rng.random() < 0.4))
        want = array[key]
        got = lamella.from_numpy(array)[key]
        assert tuple(got.shape) == want.shape, (shape, key)
        assert np.array_equal(got.numpy(), want), (shape, key)


@pytest.mark.parametrize("seed", range(14))
def test_assignments(seed):
    rng = random.Random(100 + seed)
    for _ in range(500):
        shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4)))
        array = np.arange(int(np.prod(shape))).reshape(shape)
        x = lamella.from_numpy(array.copy())
        key = of_numpy(random_key(rng, shape, rng.random() < 0.4))
        target = array[key].shape
        keep = rng.randint(0, len(target))
        value_shape = tuple(1 if rng.random() < 0.2 else n for n in target[keep:])
        if rng.random() < 0.2:
            value = -5
            array[key] = x[key] = value
        else:
            # A list may name an element twice, which keeps one of the values.
            value = np.arange(int(np.prod(value_shape))).reshape(value_shape)
            value *= -1
            if any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,))):
                value[...] = -3
            array[key] = value
            x[key] = lamella.from_numpy(value)
        assert np.array_equal(x.numpy(), array), (shape, key, value_shape)


def test_negative_steps():
    x = lamella.arange(6)
    assert x[::-1].tolist() == [5, 4, 3, 2, 1, 0] and x[4:1:-2].tolist() == [4, 2]
    assert x[1:4:-1].shape == (0,) and x[:: -(2**62)].tolist() == [5]
    x[::-2] += 10
    assert x.tolist() == [0, 11, 2, 13, 4, 15]
    # Unlike NumPy's, what is read is a copy: tensors have no negative strides.
    x[::-1][0] = 99
    assert x[-1].item() == 15
    y = lamella.arange(12.0).reshape(3, 4)
    y[::-1, [0, 2]] = lamella.tensor([[1.0, 2], [3, 4], [5, 6]])
    assert y[:, [0, 2]].tolist() == [[5.0, 6], [3, 4], [1, 2]]
    with pytest.raises(ValueError, match="^slice: expected a step other than 0, got 0$"):
        x[::0]


def test_negative_steps_have_gradients():
    x = lamella.arange(6.0, requires_grad=True)
    (x[::-2] * lamella.tensor([1.0, 2, 3])).sum().backward()
    assert x.grad.tolist() == [0, 3, 0, 2, 0, 1]
    y, value = lamella.zeros(4), lamella.ones(2, requires_grad=True)
    y[::-2] = value
    (y * lamella.arange(4.0)).sum().backward()
    assert value.grad.tolist() == [3, 1]


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_indices(name):
    at = lamella.tensor([2, 0], dtype=getattr(lamella, name))
    assert lamella.tensor([5, 6, 7])[at].tolist() == [7, 5]
    assert lamella.tensor([5, 6, 7])[at[0]].item() == 7
