"""Tensors of two devices in one call: refused, but for numbers and indices on the CPU."""

import pytest

import lamella

aten = lamella.ops.aten
INDEX = [0, 2]


def meta(*shape, dtype=lamella.float32):
    return lamella.empty(shape, dtype=dtype, device="meta")


def mixed(op, first, second, of="meta"):
    return (
        f"{op}: expected all tensors to be on one device, got '{first}' on cpu and "
        f"'{second}' on {of}"
    )


# What is called with a tensor of 3 numbers on the CPU, and the text of the error.
REFUSED = [
    (lambda x: x.masked_fill_(meta(3, dtype=lamella.bool), 1),
     mixed("masked_fill_", "self", "mask")),
    (lambda x: x.masked_fill(meta(3, dtype=lamella.bool), 1),
     mixed("masked_fill_", "self", "mask")),
    (lambda x: x.masked_fill_(x > 0, meta()), mixed("masked_fill_", "self", "value")),
    (lambda x: x.index_put_((lamella.tensor(INDEX),), meta(2)),
     mixed("index_put_", "self", "values")),
    (lambda x: x.index_put_((meta(2, dtype=lamella.int64),), x[:2]),
     mixed("index_put_", "self", "indices")),
    (lambda x: aten._index_put_impl_(x, [lamella.tensor(INDEX)], meta(2)),
     mixed("_index_put_impl_", "self", "values")),
    (lambda x: x.__setitem__(lamella.tensor(INDEX), meta(2)),
     mixed("index_put_", "self", "values")),
    (lambda x: x.__setitem__(meta(3, dtype=lamella.bool), 1.0),
     mixed("index_put_", "self", "indices")),
    (lambda x: x[meta(2, dtype=lamella.int64)], mixed("index", "self", "indices")),
    (lambda x: x.index_fill_(0, meta(2, dtype=lamella.int64), 1),
     mixed("index_fill_", "self", "index")),
    (lambda x: x.index_fill_(0, lamella.tensor(INDEX), meta()),
     mixed("index_fill_", "self", "value")),
    (lambda x: x.bernoulli_(meta(3)), mixed("bernoulli_", "self", "p")),
    (lambda x: aten.bernoulli.out(x, out=meta(3)), mixed("bernoulli", "self", "out")),
    (lambda x: x.fill_(meta()), mixed("fill_", "self", "value")),
    (lambda x: x.sum().take(meta(2, dtype=lamella.int64)), mixed("take", "self", "index")),
    (lambda x: x.sum().put_(meta(1, dtype=lamella.int64), meta(1)),
     mixed("put_", "self", "index")),
    (lambda x: x.sum().index_select(0, meta(1, dtype=lamella.int64)),
     mixed("index_select", "self", "index")),
    (lambda x: x.sum().gather(0, meta(dtype=lamella.int64)), mixed("gather", "self", "index")),
    (lambda x: x.add(meta(3)), mixed("add", "self", "other")),
    (lambda x: x.exp_().mul_(meta()), mixed("mul_", "self", "other")),
    (lambda x: lamella.cat([x, meta(3)]), mixed("cat", "tensors", "tensors")),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_refused(index):
    call, text = REFUSED[index]
    x = lamella.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError) as caught:
        call(x)
    assert str(caught.value) == text


def test_nothing_is_copied_out_of_meta():
    x = lamella.ones(3)
    for write in (lambda: x.copy_(meta(3)), lambda: x.__setitem__(0, meta())):
        with pytest.raises(NotImplementedError) as caught:
            write()
        assert str(caught.value) == "copy_: expected 'src' to have data, got a tensor on meta"
    assert x.tolist() == [1, 1, 1]


def test_numbers_and_indices_on_the_cpu():
    x, number = meta(3), lamella.tensor(2.0)
    index, mask = lamella.tensor(INDEX), meta(3, dtype=lamella.bool)
    for result in (
        x + number,
        number * x,
        x.masked_fill_(mask, number),
        x.index_fill_(0, meta(2, dtype=lamella.int64), number),
        x.index_put_((index,), number),
        x.fill_(number),
        x[index],
        lamella.where(mask, x, number),
    ):
        assert result.device.type == "meta"
