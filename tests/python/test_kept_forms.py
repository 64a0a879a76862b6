"""The packed form of a constant weight: it is kept, every way of writing drops it, and products are
the same bits with it and without."""

import ctypes
import pickle
import sys

import numpy
import pytest
from in_threads import in_threads

import lamella
from lamella import _C

functional = lamella.nn.functional
ROWS, INNER, WIDTH = 24, 160, 96


def input_rows(rows=ROWS, dtype=lamella.float32):
    lamella.manual_seed(1)
    return lamella.randn(rows, INNER).to(dtype)


def weight_of(dtype=lamella.float32, width=WIDTH):
    lamella.manual_seed(2)
    return lamella.randn(width, INNER).to(dtype)


def fresh(x, w):
    """The product with a weight that has no packed form."""
    return functional.linear(x, w.detach().clone())


def keep(x, w):
    """Multiplies until the packed form is kept; how many bytes that took."""
    before = _C._kept_form_bytes()
    for _ in range(3):
        functional.linear(x, w)
    return _C._kept_form_bytes() - before


def same_bits(a, b):
    return a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


@pytest.mark.parametrize("rows", [5, 12, 17, 64, 65, 200, 256, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bfloat16"])
def test_same_bits_with_a_packed_form(rows, dtype):
    dtype = getattr(lamella, dtype)
    x = (input_rows(rows) * 4).to(dtype)
    w = (weight_of(width=101) * 4).to(dtype)
    expected = [functional.linear(x, w) for _ in range(4)]
    b = lamella.ones(101).to(dtype)
    biased = [functional.linear(x, w, b) for _ in range(2)]
    for product in expected[1:]:
        assert product.equal(expected[0])
    assert expected[0].equal(lamella.mm(x, w.clone().t()))
    assert biased[0].equal(functional.linear(x, w.clone(), b)) and biased[0].equal(biased[1])


def test_what_is_kept():
    x, w = input_rows(), weight_of()
    before = _C._kept_form_bytes()
    functional.linear(x, w)
    assert _C._kept_form_bytes() == before, "a weight that is used once is not kept"
    functional.linear(x, w)
    kept = _C._kept_form_bytes() - before
    assert kept >= w.numel() * 4
    functional.linear(x, w)
    lamella.mm(x, w.t())
    assert _C._kept_form_bytes() - before == kept, "the same geometry is kept once"
    for half in w.split(WIDTH // 2):
        keep(x, half)
    assert _C._kept_form_bytes() > before + kept, "a part of the weight is a weight of its own"
    del half
    del w
    assert _C._kept_form_bytes() == before


@pytest.mark.parametrize("which", ["few bytes", "changing"])
def test_what_is_not_kept(which):
    x = input_rows()
    w = weight_of(width=8) if which == "few bytes" else weight_of()
    before = _C._kept_form_bytes()
    for _ in range(4):
        functional.linear(x, w)
        if which == "changing":
            w.add_(1)
    assert _C._kept_form_bytes() == before


def test_forms_of_one_storage_are_few():
    x, whole = input_rows(), lamella.randn(40 * 16, INNER)
    before = _C._kept_form_bytes()
    for part in whole.split(16):
        keep(x, part)
        assert same_bits(functional.linear(x, part), fresh(x, part))
    assert _C._kept_form_bytes() - before <= 8 * 16 * INNER * 4


class Doubled(lamella.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)


def custom_in_place(w):
    library = lamella.library.Library("kept_forms", "DEF")
    library.define("scale_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("scale_", lambda x: x.mul_(-2), "CPU")
    lamella.ops.kept_forms.scale_(w)


def optimize(make):
    def step(w):
        w.requires_grad_()
        optimizer = make([w])
        w.grad = lamella.ones_like(w)
        optimizer.step()
        w.requires_grad_(False)

    return step


optim = lamella.optim
WRITES = {
    "add_": lambda w: w.add_(1),
    "mul of a row": lambda w: w[3].mul_(2),
    "fill of a column": lambda w: w[:, 5].fill_(7),
    "element": lambda w: w.__setitem__((0, 0), 100.0),
    "mask": lambda w: w.__setitem__(w > 0, 1.0),
    "copy_": lambda w: w.copy_(lamella.ones_like(w)),
    "zero_ of the transpose": lambda w: w.t().zero_(),
    "view as another type": lambda w: w.view(lamella.int32).zero_(),
    "add(out=)": lambda w: lamella.add(w, 1, out=w),
    "mm(out=)": lambda w: lamella.mm(lamella.ones(WIDTH, 2), lamella.ones(2, INNER), out=w),
    "cat(out=)": lambda w: lamella.cat([lamella.ones(WIDTH, INNER)], out=w),
    "sort(out=)": lambda w: lamella.sort(-w, out=(w, lamella.empty(0, dtype=lamella.int64))),
    "addmm_": lambda w: w.addmm_(lamella.ones(WIDTH, 2), lamella.ones(2, INNER)),
    "normal_": lambda w: w.normal_(),
    "dropout_": lambda w: functional.dropout(w, 0.5, True, inplace=True),
    "relu_": lambda w: functional.relu_(w),
    "index_put_": lambda w: w.index_put_((lamella.tensor([1]),), lamella.tensor(3.0)),
    "index_add_": lambda w: w.index_add_(0, lamella.tensor([1]), lamella.ones(1, INNER)),
    "scatter_": lambda w: w.scatter_(0, lamella.zeros(1, INNER, dtype=lamella.int64), 2.0),
    "masked_fill_": lambda w: w.masked_fill_(w > 0, 3.0),
    "clamp_": lambda w: w.clamp_(0, 0.5),
    "foreach": lambda w: lamella._foreach_add_([w], 1.0),
    "detach": lambda w: w.detach().add_(1),
    "data": lambda w: w.data.add_(1),
    "view of data": lambda w: w.data[2].add_(1),
    "data of a view": lambda w: w[2].data.add_(1),
    "data is assigned": lambda w: setattr(w, "data", lamella.ones(WIDTH, INNER)),
    "data of other size": lambda w: setattr(w, "data", lamella.ones(WIDTH + 16, INNER)),
    "set_": lambda w: w.set_(lamella.ones(WIDTH, INNER)),
    "resize_": lambda w: w.resize_(2 * WIDTH, INNER).fill_(3),
    "Function": lambda w: Doubled.apply(w),
    "library": custom_in_place,
    "SGD": optimize(lambda p: optim.SGD(p, lr=0.1, momentum=0.9)),
    "SGD, foreach": optimize(lambda p: optim.SGD(p, lr=0.1, foreach=True)),
    "AdamW": optimize(lambda p: optim.AdamW(p, lr=0.1)),
    "AdamW, foreach": optimize(lambda p: optim.AdamW(p, lr=0.1, foreach=True)),
    "AdamW, fused": optimize(lambda p: optim.AdamW(p, lr=0.1, fused=True)),
    "init": lambda w: lamella.nn.init.uniform_(w),
}


NEED_GRADIENTS = ("SGD", "AdamW", "Function")
CASES = [(write, mode) for write in WRITES for mode in ("enable_grad", "no_grad", "inference_mode")
         if mode == "enable_grad" or write.split(",")[0] not in NEED_GRADIENTS]  # fmt: skip


@pytest.mark.parametrize(("write", "mode"), CASES, ids=str)
def test_a_write_drops_it(write, mode):
    x, w = input_rows(), weight_of()
    if mode == "inference_mode":
        with lamella.inference_mode():
            w = w.clone()
    assert keep(x, w) > 0
    before = functional.linear(x, w)
    with getattr(lamella, mode)():
        for _ in range(2):
            WRITES[write](w)
            after = functional.linear(x, w)
            assert same_bits(after, fresh(x, w))
    assert after.shape != before.shape or not same_bits(before, after)
    keep(x, w)
    assert same_bits(functional.linear(x, w), fresh(x, w))


# Addresses that are given out: each gives a function that writes the memory without being counted.
def write_by_address(w):
    address, count = w.data_ptr(), w.numel()
    return lambda: ctypes.memset(address, 0, 4 * count)


def write_by_array(array):
    def write():
        array[...] = 0.0

    return write


def write_bytes(view):
    def write():
        view.cast("B")[:4096] = bytes(4096)

    return write


ADDRESSES = {
    "numpy": lambda w: write_by_array(w.numpy()),
    "numpy of a row": lambda w: write_by_array(w[3].numpy()),
    "numpy of data": lambda w: write_by_array(w.data.numpy()),
    "numpy.asarray": lambda w: write_by_array(numpy.asarray(w)),
    "memoryview": lambda w: write_bytes(memoryview(w)),
    "dlpack": lambda w: write_by_array(numpy.from_dlpack(w)),
    "dlpack to us": lambda w: write_by_array(lamella.from_dlpack(w).numpy()),
    "data_ptr": write_by_address,
    "data_ptr of storage": lambda w: (
        lambda p=w.untyped_storage().data_ptr(): ctypes.memset(p, 0, 4096)
    ),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("address", ADDRESSES, ids=str)
def test_memory_that_was_given_out_has_none(address, when):
    x, w = input_rows(), weight_of()
    if when == "after":
        assert keep(x, w) > 0
    write = ADDRESSES[address](w)
    start = _C._kept_form_bytes()
    before = functional.linear(x, w)
    assert keep(x, w) <= 0 and _C._kept_form_bytes() <= start
    write()
    after = functional.linear(x, w)
    assert not same_bits(before, after)
    assert same_bits(after, fresh(x, w))


ARRAYS = [name for name in ADDRESSES if not name.startswith("data_ptr")]


@pytest.mark.parametrize("address", ARRAYS, ids=str)
def test_memory_that_came_back_is_kept(address):
    x, w = input_rows(), weight_of()
    writes = [ADDRESSES[address](w) for _ in range(2)]
    before = keep(x, w)
    writes.pop()()
    assert before == 0 and keep(x, w) == 0, "the other one may still write"
    writes.pop()()
    assert keep(x, w) > 0
    assert same_bits(functional.linear(x, w), fresh(x, w))


def test_foreign_memory_has_none():
    array = weight_of().clone().numpy()
    x, w = input_rows(), lamella.from_numpy(array)
    assert keep(x, w) == 0
    before = functional.linear(x, w)
    array[...] = 1
    assert not same_bits(before, functional.linear(x, w))


def test_pickled_weights_are_kept():
    x, w = input_rows(), weight_of()
    loaded = pickle.loads(pickle.dumps(w))
    assert keep(x, loaded) > 0
    assert same_bits(functional.linear(x, loaded), fresh(x, w))


def test_weights_of_files(tmp_path):
    x, w = input_rows(), weight_of()
    lamella.save_file({"w": w}, tmp_path / "w.safetensors")
    loaded = lamella.load_file(tmp_path / "w.safetensors")["w"]
    for written in (w, loaded):
        assert keep(x, written) > 0
        written.add_(1)
        assert same_bits(functional.linear(x, written), fresh(x, written))


def test_state_dict():
    x = input_rows()
    layer = lamella.nn.Linear(INNER, WIDTH)
    with lamella.no_grad():
        for _ in range(3):
            layer(x)
        layer.load_state_dict({"weight": weight_of(), "bias": lamella.zeros(WIDTH)})
        assert same_bits(layer(x), fresh(x, weight_of()))
        layer.half().float()
        expected = fresh(x, weight_of().half().float())
        assert same_bits(layer(x), expected) and same_bits(layer(x), expected)


def test_gradients_and_training():
    x = input_rows()
    w = weight_of().requires_grad_()
    steps = []
    for packed in (True, False):
        p = w.detach().clone().requires_grad_()
        optimizer = optim.SGD([p], lr=0.01)
        for _ in range(4):
            weight = p if packed else p.clone()
            for _ in range(3):  # the same weight several times within a step
                functional.linear(x, weight).square().mean().backward()
            optimizer.step()
        steps.append(p)
    assert same_bits(*steps)


def test_a_data_alias_counts_for_itself_many_times():
    x, w = input_rows(), weight_of()
    keep(x, w)
    alias = w.data
    for _ in range(70000):  # more than the count of such writes holds
        alias[0, 0] = 1.0
    alias.add_(1)
    assert same_bits(functional.linear(x, w), fresh(x, w))


def test_threads_share_one():
    x, w = input_rows(), weight_of()
    expected = fresh(x, w)
    before = _C._kept_form_bytes()
    wrong = []

    def work():
        for _ in range(50):
            if not functional.linear(x, w).equal(expected):
                wrong.append(1)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    in_threads(work)
    sys.setswitchinterval(interval)
    assert not wrong
    assert _C._kept_form_bytes() - before <= 2 * w.numel() * 4


def test_thread_counts_give_the_same_bits():
    x, w = lamella.randn(40, 300), lamella.randn(500, 300)
    threads = lamella.get_num_threads()
    try:
        products = []
        for count in (1, 2, 3, 8):
            lamella.set_num_threads(count)
            weight = w.clone()
            products += [functional.linear(x, weight) for _ in range(3)]
    finally:
        lamella.set_num_threads(threads)
    assert all(product.equal(products[0]) for product in products)
