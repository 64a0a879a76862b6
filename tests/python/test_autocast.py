"""Autocast: regions, cached casts of weights, operator classes, and PyTorch's behaviour."""

import re

import fresh_torch
import pytest
from in_threads import in_threads

torch = pytest.importorskip("torch")

from op_db_mirror import to_torch  # noqa: E402
from operator_rows import ROWS  # noqa: E402

import lamella  # noqa: E402

BF16, F16, F32, F64 = lamella.bfloat16, lamella.float16, lamella.float32, lamella.float64


def region(**kwargs):
    return lamella.autocast("cpu", **kwargs)


def product(dtype=F32):
    a = lamella.ones(2, 2, dtype=dtype)
    return lamella.mm(a, a)


# ---- The lists -----------------------------------------------------------------------------------


def declared():
    for name, overload in lamella._C._operator_names():
        if name.startswith("aten::"):
            packet = getattr(lamella.ops.aten, name[6:])
            yield (
                name + (f".{overload}" if overload else ""),
                getattr(packet, overload or "default"),
            )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_cast_is_what_pytorch_casts(device):
    key = f"Autocast{device.upper()}"
    known = set(torch._C._dispatch_get_all_op_names())
    for name, op in declared():
        ours = op.policy(f"autocast.{device}") not in (None, "none")
        if name in known:
            theirs = torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
            assert ours == theirs, name
        else:
            assert not ours, name


def test_names_that_are_not_declared_are_pytorchs():
    """PyTorch's lists are completely in ops/autocast.yaml."""
    from pathlib import Path

    text = (Path(__file__).resolve().parents[2] / "ops" / "autocast.yaml").read_text()
    parts = text.partition("- device: cpu")
    for part, key in ((parts[0], "AutocastCUDA"), (parts[2], "AutocastCPU")):
        lines = [line for line in part.splitlines() if not line.startswith("#")]
        ours = set(re.findall(r"[\w.]+(?=[,\n])|[\w.]+(?=\])", "\n".join(lines)))
        ours = {word for word in ours if not word.endswith(("default", "cpu"))}
        names = fresh_torch.ask(
            "[name[6:] for name in torch._C._dispatch_get_all_op_names() "
            f"if torch._C._dispatch_has_kernel_for_dispatch_key(name, {key!r})]"
        )
        # Builds with cuDNN cast for its recurrent networks in a function of their own.
        theirs = set(names) - {"_cudnn_rnn"}
        assert theirs - ours == set()
        assert ours - theirs == set()


# ---- Kernels of others ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["Autocast", "AutocastCPU"])
def test_a_kernel_runs_where_autocast_is_on_for_its_device(key):
    library = lamella.library.Library("autocast_own", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    library.impl("f", lambda x: x + 100, key)
    f = lamella.ops.autocast_own.f
    x = lamella.zeros(1)
    assert f(x).item() == 1
    with lamella.autocast("cuda"):
        assert f(x).item() == 1
        with lamella.autocast("cpu"):
            assert f(x).item() == 100
        assert f(x).item() == 1
    with lamella.autocast("cpu"):
        assert f(x).item() == 100
    assert f(x).item() == 1
    library._destroy()


def test_a_fallback_runs_where_autocast_is_on_for_its_device():
    seen = []

    def note(op, *args, **kwargs):
        seen.append(op.name())
        with lamella.autocast("cpu", enabled=False):
            return op(*args, **kwargs)

    own = lamella.library.Library("autocast_fallback", "DEF")
    own.define("f(Tensor x) -> Tensor")
    own.impl("f", lambda x: x.clone(), "CPU")
    f = lamella.ops.autocast_fallback.f
    x = lamella.zeros(1)
    library = lamella.library.Library("_", "IMPL")
    library.fallback(note, "AutocastCPU")
    try:
        with lamella.autocast("cuda"):
            f(x)
        assert seen == []
        with lamella.autocast("cpu"):
            f(x)
        assert seen == ["autocast_fallback::f"]
    finally:
        library._destroy()
        own._destroy()


# ---- Regions -------------------------------------------------------------------------------------


def test_a_region_casts_and_ends():
    assert product().dtype == F32
    with region() as entered:
        assert isinstance(entered, lamella.autocast)
        assert lamella.is_autocast_enabled("cpu")
        assert not lamella.is_autocast_enabled("cuda")
        assert product().dtype == BF16
    assert not lamella.is_autocast_enabled("cpu")
    assert product().dtype == F32


def test_regions_nest():
    with region(dtype=F16):
        assert product().dtype == F16
        with region(enabled=False):
            assert product().dtype == F32
            with region(dtype=BF16):
                assert product().dtype == BF16
            assert product().dtype == F32
        with region():  # the dtype that is set
            assert product().dtype == F16
        assert product().dtype == F16
    assert lamella.get_autocast_dtype("cpu") == BF16


def test_one_object_is_entered_again():
    one = region()
    with one:
        with region(enabled=False), one:
            assert product().dtype == BF16
        assert product().dtype == BF16
    assert product().dtype == F32


def test_an_error_ends_a_region():
    with pytest.raises(ZeroDivisionError), region(dtype=F16, cache_enabled=False):
        raise ZeroDivisionError
    assert not lamella.is_autocast_enabled("cpu")
    assert lamella.get_autocast_dtype("cpu") == BF16
    assert lamella.is_autocast_cache_enabled()


def test_decorators():
    @region(dtype=F16)
    def inside(n):
        """Says."""
        return product() if n == 0 else inside(n - 1)

    @region()
    def generate():
        yield product().dtype
        yield product().dtype

    assert inside(2).dtype == F16
    assert (inside.__name__, inside.__doc__) == ("inside", "Says.")
    found = []
    for dtype in generate():
        found.append((dtype, product().dtype))
    assert found == [(BF16, F32)] * 2


def test_a_region_is_its_threads():
    found = []

    def work():
        found.append(product().dtype)
        with region(dtype=F16):
            weight = lamella.ones(2, 2, requires_grad=True)
            found.append(lamella.mm(weight, weight).dtype)
            # Ends inside of a region, with a cast that is kept.
            lamella._C.autocast_increment_nesting()
            lamella.mm(weight, weight)

    with region():
        in_threads(work, 1)
        assert product().dtype == BF16
    assert found == [F32, F16]


def test_functions_of_pytorchs_names():
    lamella.set_autocast_enabled("cpu", True)
    assert lamella.is_autocast_cpu_enabled()
    assert product().dtype == BF16
    lamella.set_autocast_cpu_enabled(False)
    assert not lamella.is_autocast_enabled("cpu")
    lamella.set_autocast_enabled(True)
    assert lamella.is_autocast_enabled() and lamella.is_autocast_enabled("cuda")
    assert product().dtype == F32  # on for CUDA alone
    lamella.set_autocast_enabled(False)
    assert lamella.get_autocast_gpu_dtype() == F16
    assert lamella.get_autocast_dtype("cuda") == F16
    lamella.set_autocast_dtype("cuda", BF16)
    assert lamella.get_autocast_gpu_dtype() == BF16
    lamella.set_autocast_gpu_dtype(F16)
    assert lamella.get_autocast_cpu_dtype() == BF16
    assert lamella.autocast_increment_nesting() == 1
    assert lamella.autocast_decrement_nesting() == 0
    lamella.set_autocast_cache_enabled(False)
    assert not lamella.is_autocast_cache_enabled()
    lamella.set_autocast_cache_enabled(True)
    assert lamella.amp.is_autocast_available("cpu")
    assert not lamella.amp.is_autocast_available("meta")


def test_what_is_refused():
    with pytest.raises(ValueError) as error:
        lamella.autocast(3)
    assert str(error.value) == (
        "autocast: expected 'device_type' to be text such as 'cpu', got int"
    )
    with pytest.raises(RuntimeError) as error:
        lamella.autocast("meta")
    assert str(error.value) == (
        "get_autocast_dtype: expected 'device_type' to be one that autocast works for, such as "
        "cpu or cuda, got 'meta'"
    )
    with pytest.warns(UserWarning) as warned:
        off = lamella.autocast("cpu", dtype=F32)
    assert str(warned[0].message) == (
        "autocast: expected 'dtype' to be bfloat16 or float16, got lamella.float32; autocast is "
        "disabled in the region"
    )
    with off:
        assert product().dtype == F32


# ---- Classes -------------------------------------------------------------------------------------


def test_float64_and_numbers_stay():
    with region():
        assert product(F64).dtype == F64
        index = lamella.tensor([[1, 2], [3, 4]])
        assert lamella.mm(index, index).dtype == lamella.int64


def test_widest():
    half, single = lamella.ones(2, dtype=BF16), lamella.ones(2)
    with region():
        assert lamella.cat([half, half]).dtype == BF16
        assert lamella.cat([half, single]).dtype == F32
        assert lamella.stack([single, half]).dtype == F32
        assert lamella.stack([half, lamella.ones(2, dtype=F16)]).dtype == F32


def test_in_place_and_out_are_never_cast():
    a, into = lamella.ones(2, 2), lamella.empty(2, 2)
    with region():
        assert a.addmm_(a.clone(), a.clone()).dtype == F32
        assert lamella.mm(a, a, out=into).dtype == F32


def operator(schema, kernel, **policies):
    """A library with one operator, which kept alive keeps it defined."""
    name = schema.partition("(")[0]
    library = lamella.library.Library("cast_test", "FRAGMENT")
    library.define(schema, **policies)
    library.impl(name, kernel, "CompositeExplicitAutograd")
    return library, getattr(lamella.ops.cast_test, name)


@pytest.mark.parametrize(
    ("word", "given", "seen"),
    [
        ("lower_precision", [F32, F64], [BF16, F64]),
        ("float32", [F16, F32], [F32, F32]),
        ("widest", [BF16, F32], [F32, F32]),
        ("widest", [BF16, BF16], [BF16, BF16]),
        ("none", [F32, F16], [F32, F16]),
    ],
)
def test_an_operator_of_ones_own(word, given, seen):
    found = []

    def kernel(x, ys):
        found.append([x.dtype, *(y.dtype for y in ys)])
        assert not lamella.is_autocast_enabled("cpu") or word == "none"
        assert word == "none" or product().dtype == F32  # its parts are not cast again
        return x.clone()

    library, op = operator("own(Tensor x, Tensor[] ys) -> Tensor", kernel, autocast=word)
    x, y = (lamella.ones(2, dtype=dtype) for dtype in given)
    op(x, [y])
    with region():
        op(x, [y])
        op(y, [x, y])
    assert found == [given, seen, [seen[1], *seen]]
    library.close()


def test_a_dtype_that_is_set():
    found = []

    def kernel(x, *, dtype=None):
        found.append((x.dtype, dtype))
        return x.clone()

    schema = "total(Tensor x, *, ScalarType? dtype=None) -> Tensor"
    library, op = operator(schema, kernel, autocast="float32_set_dtype")
    with region():
        op(lamella.ones(2, dtype=BF16))
        op(lamella.ones(2, dtype=BF16), dtype=F16)
        op(lamella.ones(2, dtype=F64))
    assert found == [(BF16, F32), (BF16, F16), (F64, None)]
    library.close()


def test_a_banned_operator():
    library, op = operator(
        "unsafe(Tensor x) -> Tensor", lambda x: x.clone(), tags="autocast.cpu:banned"
    )
    x = lamella.ones(2)
    op(x)
    with region(), pytest.raises(RuntimeError) as error:
        op(x)
    assert str(error.value) == (
        "unsafe: expected to be called outside of autocast for cpu, because it is unsafe in lower "
        "precision; take its arguments to float32 inside of autocast(enabled=False)"
    )
    library.close()


def test_register_autocast():
    found = []

    def kernel(x, ys):
        found.append([x.dtype, *(y.dtype for y in ys), product().dtype])
        return x.clone()

    library, op = operator("registered(Tensor x, Tensor[] ys) -> Tensor", kernel)
    lamella.library.register_autocast("cast_test::registered", "cpu", F16, lib=library)
    x, y = lamella.ones(2), lamella.ones(2, dtype=F64)
    op(x, [x, y])
    with region():
        op(x, [x, y])
    assert found == [[F32, F32, F64, F32], [F16, F16, F64, F32]]
    with pytest.raises(ValueError) as error:
        lamella.library.register_autocast("cast_test::registered", "meta", F16)
    assert str(error.value) == (
        "register_autocast: expected 'device_type' to be one that autocast works for, such as cpu "
        "or cuda, got 'meta'"
    )
    with pytest.raises(TypeError) as error:
        lamella.library.register_autocast("cast_test::registered", "cpu", "half")
    assert str(error.value) == ("register_autocast: expected 'cast_inputs' to be a dtype, got str")
    library.close()


def test_explain_says_what_is_cast():
    x = lamella.ones(2, 2)
    with region():
        text = str(lamella.explain(lamella.mm, x, x))
    assert "runs: autocast class 'lower_precision': casts the arguments, then goes on" in text


# ---- The table of differentiable operators -------------------------------------------------------


BY_PARTS = {"linalg.matrix_exp"}


def word_of(row):
    """The autocast class on the CPU that all overloads of a row's operator have; None: they differ,
    or the row's function is none of one operator's."""
    found = lamella
    for part in row.path.split("."):
        found = getattr(found, part)
    name = getattr(found, "_operator_name", None)
    if name is None:
        return None
    packet = lamella.ops.aten
    packet = getattr(packet, name[6:])
    words = set()
    for overload in packet.overloads():
        op = getattr(packet, overload)
        if "!" in op._schema:
            continue
        if op.policy("batching") == "composite" and op.policy("autocast.cpu") is None:
            return None  # goes by its parts: test_autocast_op_db.py
        words.add(op.policy("autocast.cpu") or "none")
    return words.pop() if len(words) == 1 else None


# Rows whose own function calls other operators as well go by the parts, like
# test_autocast_op_db.py's; so does what is made of matrix products behind one name.
SINGLE = [(row, word_of(row)) for row in ROWS if row.fn is None and row.path not in BY_PARTS]
SINGLE = [(row, word) for row, word in SINGLE if word in ("none", "lower_precision", "float32")]


def tensors(value):
    return [value] if isinstance(value, lamella.Tensor) else list(value)


def results(function, inputs):
    """Results, and the gradients of the inputs."""
    outs = tensors(function(*inputs))
    total = sum((o.abs() if o.is_complex() else o).float().sum() for o in outs)
    grads = lamella.autograd.grad(total, inputs, allow_unused=True)
    return outs, [g for g in grads if g is not None]


def same(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected):
        assert one.dtype == other.dtype
        torch.testing.assert_close(
            to_torch(one.detach()), to_torch(other.detach()), rtol=0, atol=0, equal_nan=True
        )


@pytest.mark.parametrize(("row", "word"), SINGLE, ids=lambda v: getattr(v, "name", v))
def test_rows_are_cast_as_by_hand(row, word):
    """Bit for bit equal to the same call on inputs that are cast explicitly."""
    given, to = (BF16, F32) if word == "float32" else (F32, BF16)

    def call(by_hand, **kwargs):
        function, inputs = row.call("float32")  # may multiply matrices itself
        inputs = [x.detach().to(given).requires_grad_() for x in inputs]
        lamella.manual_seed(0)
        with region(**kwargs):
            if by_hand and word != "none":
                return results(lambda *xs: function(*(x.to(to) for x in xs)), inputs)
            return results(function, inputs)

    try:
        expected = call(True, enabled=False)
    except (RuntimeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            call(False)
        return
    for mine, theirs in zip(call(False), expected):
        same(mine, theirs)
