"""Random numbers under vmap: refused, different for each example, or the same."""

import pytest

import lamella
from lamella import nn, vmap

ONES = lamella.ones(3, 24)

FACTORIES = {
    "rand": lambda: lamella.rand(24),
    "randn": lambda: lamella.randn(24),
    "randint": lambda: lamella.randint(0, 1000, (24,)),
    "randperm": lambda: lamella.randperm(24),
    "normal": lambda: lamella.normal(0.0, 1.0, (24,)),
    "bernoulli": lambda: lamella.bernoulli(lamella.full((24,), 0.5)),
    "multinomial": lambda: lamella.multinomial(lamella.ones(24), 12),
    "rand_like": lambda: lamella.rand_like(lamella.ones(24)),
}
OF_TENSORS = {
    "normal_": lambda a: a.clone().normal_(),
    "uniform_": lambda a: a.clone().uniform_(),
    "bernoulli_": lambda a: a.clone().bernoulli_(0.5),
    "exponential_": lambda a: a.clone().exponential_(),
    "rand_like": lambda a: lamella.rand_like(a),
}
OF_VALUES = {
    "bernoulli": lambda a: lamella.bernoulli(a * 0.5),
    "multinomial": lambda a: lamella.multinomial(a, 12),
}
ALL = {**OF_TENSORS, **OF_VALUES}


def distinct(rows):
    return len({tuple(row) for row in rows.tolist()})


def drawn(function, randomness):
    return vmap(lambda a: function() + a[:1] * 0, randomness=randomness)(ONES)


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    assert distinct(drawn(FACTORIES[name], "different")) == 3
    assert distinct(drawn(FACTORIES[name], "same")) == 1
    with pytest.raises(RuntimeError) as error:
        drawn(FACTORIES[name], "error")
    assert str(error.value) == (
        f"{name}: expected 'randomness' of vmap to say what drawing random numbers means, got "
        '"error"; pass randomness="different" for other numbers in each example, or "same"'
    )


@pytest.mark.parametrize("name", ALL)
def test_of_batched_tensors(name):
    assert distinct(vmap(ALL[name], randomness="different")(ONES)) == 3
    with pytest.raises(RuntimeError, match=f"^{name}: expected 'randomness'"):
        vmap(ALL[name])(ONES)


@pytest.mark.parametrize("name", OF_TENSORS)
def test_the_same_for_batched_tensors(name):
    assert distinct(vmap(OF_TENSORS[name], randomness="same")(ONES)) == 1


@pytest.mark.parametrize("name", OF_VALUES)
def test_values_cannot_give_the_same(name):
    with pytest.raises(RuntimeError) as error:
        vmap(OF_VALUES[name], randomness="same")(ONES)
    assert str(error.value) == (
        f"{name}: expected 'self' not to be batched under vmap with randomness \"same\", because "
        'numbers that depend on it differ from example to example; use randomness "different"'
    )


def test_one_tensor_cannot_hold_different_numbers():
    with pytest.raises(RuntimeError) as error:
        vmap(lambda a: lamella.zeros(4).normal_() + a[0], randomness="different")(ONES)
    assert str(error.value) == (
        "normal_: expected 'self', which is written, to be batched under vmap with randomness "
        '"different", because one tensor cannot hold other numbers for each of 3 examples'
    )


def test_dropout():
    drop = nn.functional.dropout
    ones = lamella.ones(3, 200)
    different = vmap(lambda a: drop(a, 0.5), randomness="different")(ones)
    assert distinct(different) == 3 and set(different.flatten().tolist()) == {0.0, 2.0}
    assert distinct(vmap(lambda a: drop(a, 0.5), randomness="same")(ones)) == 1
    shared = vmap(lambda a: drop(lamella.ones(200), 0.5) * a[0], randomness="different")(ones)
    assert distinct(shared) == 3
    assert lamella.equal(vmap(lambda a: drop(a, 0.5, training=False))(ones), ones)
    with pytest.raises(RuntimeError, match="expected 'randomness' of vmap"):
        vmap(lambda a: drop(a, 0.5))(ones)


def test_levels_say_each_for_itself():
    def program(outer, inner):
        return vmap(
            lambda a: vmap(lambda b: lamella.rand(8) + b * 0 + a[0] * 0, randomness=inner)(
                lamella.ones(2)
            ),
            randomness=outer,
        )(ONES)

    assert distinct(program("different", "different").reshape(6, 8)) == 6
    made = program("different", "same")
    assert distinct(made[0]) == 1 and distinct(made[:, 0]) == 3
    made = program("same", "different")
    assert distinct(made[0]) == 2 and distinct(made[:, 0]) == 1
    assert distinct(program("same", "same").reshape(6, 8)) == 1
    with pytest.raises(RuntimeError, match="^rand: expected 'randomness' of vmap"):
        program("error", "different")


def test_chunks():
    def draw(randomness):
        return vmap(lambda a: lamella.rand_like(a), randomness=randomness, chunk_size=2)(ONES)

    assert distinct(draw("different")) == 3
    assert distinct(draw("same")) == 1


def test_a_seed_gives_the_same_numbers():
    def draw():
        lamella.manual_seed(3)
        return vmap(lambda a: lamella.rand(8) * a[0], randomness="different")(ONES)

    assert lamella.equal(draw(), draw())


# ---- Attention ----


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 3, 4), (2, 2, 2, 3, 4)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("randomness", ["error", "different", "same"])
def test_attention_without_dropout_draws_nothing(shape, masked, randomness):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(5, *shape) for _ in range(3))
    mask = (torch.rand(shape[-2], shape[-2]) > 0.3) if masked else None
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    mine = [lamella.from_numpy(t.numpy()) for t in (q, k, v)]
    my_mask = None if mask is None else lamella.from_numpy(mask.numpy())

    def attention(q, k, v):
        return lamella.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=my_mask)

    found = vmap(attention, randomness=randomness)(*mine)
    torch.testing.assert_close(torch.from_dlpack(found.contiguous()), expected)
    last = [t.movedim(0, -1) for t in mine]
    found = vmap(attention, in_dims=-1, randomness=randomness)(*last)
    torch.testing.assert_close(torch.from_dlpack(found.contiguous()), expected)


def test_dropout_that_drops_nothing_draws_nothing():
    x = lamella.randn(3, 4)
    f = lamella.nn.functional
    assert vmap(lambda x: f.dropout(x, 0.5, training=False))(x).tolist() == x.tolist()
    assert vmap(lambda x: lamella.native_dropout(x, 0.5, False)[0])(x).tolist() == x.tolist()
    assert vmap(lambda x: f.rrelu(x, training=False))(x).shape == x.shape
    for drawing in (
        lambda x: f.dropout(x, 0.5),
        lambda x: lamella.native_dropout(x, 0.5, True)[0],
        lambda x: f.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
    ):
        with pytest.raises(RuntimeError, match="expected 'randomness' of vmap to say"):
            vmap(drawing)(x)
