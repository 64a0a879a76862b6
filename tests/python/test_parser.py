"""The argument parser: every kind of argument, by position and by keyword."""

import pytest

import lamella


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_positions_keywords_and_defaults(recorder):
    op = recorder.define("f(Tensor self, int a, float b=2.5, *, bool c=True, str? d=None)")
    x = lamella.tensor(1.0)
    op(x, 1)
    assert recorder.last == (x, 1, 2.5, {"c": True, "d": None})
    op(x, a=3, b=1, c=False, d="word")
    assert recorder.last == (x, 3, 1.0, {"c": False, "d": "word"})
    op(c=False, b=0.5, a=2, self=x)
    assert recorder.last == (x, 2, 0.5, {"c": False, "d": None})
    op(input=x, a=4)
    assert recorder.last[:2] == (x, 4)
    assert recorder.last[0] is x


@pytest.mark.parametrize(
    ("given", "seen"),
    [(3, 3), (-7, -7), (Index(5), 5), (2**63 - 1, 2**63 - 1), (lamella.tensor(6), 6)],
)
def test_int(recorder, given, seen):
    op = recorder.define("f(int a)")
    op(given)
    assert recorder.last == (seen,)


@pytest.mark.parametrize("given", [1.0, True, "1", None, [1], lamella.tensor(1.5), 1j])
def test_not_an_int(recorder, given):
    op = recorder.define("f(int a)")
    with pytest.raises(TypeError, match="expected int, got"):
        op(given)


def test_int_that_does_not_fit(recorder):
    op = recorder.define("f(int a)")
    with pytest.raises(OverflowError, match="expected an int that fits 64 bits, got 9223372036"):
        op(2**63)


@pytest.mark.parametrize(
    ("given", "seen"), [(1.5, 1.5), (2, 2.0), (True, 1.0), (lamella.tensor(0.25), 0.25)]
)
def test_float(recorder, given, seen):
    op = recorder.define("f(float a)")
    op(given)
    assert recorder.last == (seen,) and isinstance(recorder.last[0], float)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (1, int),
        (1.5, float),
        (True, bool),
        (1 + 2j, complex),
        (lamella.tensor(3), int),
        (lamella.tensor(2.5), float),
        (lamella.tensor(True), bool),
        (Index(4), int),
    ],
)
def test_scalar(recorder, given, kind):
    op = recorder.define("f(Scalar a)")
    op(given)
    assert type(recorder.last[0]) is kind
    value = given.item() if lamella.is_tensor(given) else given
    assert recorder.last[0] == (value.value if isinstance(value, Index) else value)


def test_numpy_scalars(recorder):
    numpy = pytest.importorskip("numpy")
    scalar = recorder.define("f(Scalar a)")
    for made, kind in [
        (numpy.float32(1.5), float),
        (numpy.float64(2.5), float),
        (numpy.int8(3), int),
        (numpy.uint16(4), int),
        (numpy.bool_(True), bool),
        (numpy.complex64(1j), complex),
        (numpy.float16(0.5), float),
    ]:
        scalar(made)
        assert type(recorder.last[0]) is kind and recorder.last[0] == made
    integer = recorder.define("g(int a, float b, bool c)")
    integer(numpy.int32(7), numpy.float32(0.5), numpy.bool_(False))
    assert recorder.last == (7, 0.5, False)
    with pytest.raises(TypeError):
        integer(numpy.float32(7), 0.5, True)


def test_int_lists(recorder):
    op = recorder.define("f(int[] a, int[2] b=1, int[3]? c=None)")
    op([1, 2])
    assert recorder.last == ([1, 2], [1, 1], None)
    op((3,), 5, 7)
    assert recorder.last == ([3], [5, 5], [7, 7, 7])
    op(lamella.Size([2, 3]), [1, 2], (1, 2, 3))
    assert recorder.last == ([2, 3], [1, 2], [1, 2, 3])
    op([lamella.tensor(4), Index(5)])
    assert recorder.last[0] == [4, 5]
    op(range(3))
    assert recorder.last[0] == [0, 1, 2]
    op([])
    assert recorder.last[0] == []
    long = list(range(5000))
    op(long, long)
    assert recorder.last[:2] == (long, long)
    with pytest.raises(TypeError):
        op([1.5])
    with pytest.raises(TypeError):
        op([True])


def test_varargs(recorder):
    view = recorder.define("view(Tensor self, int[] size)")
    x = lamella.tensor([1.0])
    view(x, 2, 3)
    assert recorder.last == (x, [2, 3])
    view(x, 4)
    assert recorder.last == (x, [4])
    view(x, (5, 6))
    assert recorder.last == (x, [5, 6])
    zeros = recorder.define("zeros(int[] size, *, ScalarType? dtype=None)")
    zeros(2, 3, dtype=lamella.int64)
    assert recorder.last == ([2, 3], {"dtype": lamella.int64})
    zeros(size=(1, 2))
    assert recorder.last[0] == [1, 2]
    two = recorder.define("two(Tensor self, int[] dims, bool keepdim=False)")
    with pytest.raises(TypeError):
        two(x, 1, 2)


def test_other_lists(recorder):
    op = recorder.define("f(float[] a, bool[2] b, Tensor[] c, Tensor?[] d, Scalar[] e, str[] g)")
    x, y = lamella.tensor(1.0), lamella.tensor(2.0)
    op([1, 2.5], [True, False], (x, y), [None, x], [1, 2.5, True], ["a", "bc"])
    a, b, c, d, e, g = recorder.last
    assert a == [1.0, 2.5] and b == [True, False]
    assert c[0] is x and c[1] is y and d[0] is None and d[1] is x
    assert e == [1, 2.5, True] and [type(v) for v in e] == [int, float, bool]
    assert g == ["a", "bc"]
    op([], True, [], [], [], [])
    assert recorder.last[1] == [True, True]
    with pytest.raises(
        TypeError, match=r"'c' \(position 3\): expected Tensor\[\], got \[Tensor, None\]"
    ):
        op([], True, [x, None], [], [], [])


def test_dtype(recorder):
    op = recorder.define("f(ScalarType a)")
    for given, seen in [
        (lamella.float16, lamella.float16),
        (float, lamella.float64),
        (int, lamella.int64),
        (bool, lamella.bool),
        (complex, lamella.complex128),
    ]:
        op(given)
        assert recorder.last == (seen,)
    numpy = pytest.importorskip("numpy")
    op(numpy.float64)
    assert recorder.last == (lamella.float64,)
    op(numpy.dtype("int8"))
    assert recorder.last == (lamella.int8,)
    with pytest.raises(TypeError):
        op("float32")


def test_device_layout_format(recorder):
    op = recorder.define(
        "f(Device a, Layout b=strided, MemoryFormat c=contiguous_format, Generator? d=None)"
    )
    op("meta")
    assert recorder.last == (
        lamella.device("meta"),
        lamella.strided,
        lamella.contiguous_format,
        None,
    )
    generator = lamella.Generator()
    op(lamella.device("cuda", 1), lamella.sparse_csr, lamella.channels_last, generator)
    assert recorder.last[:3] == (
        lamella.device("cuda:1"),
        lamella.sparse_csr,
        lamella.channels_last,
    )
    generator.manual_seed(5)
    assert recorder.last[3].initial_seed() == 5
    op("cuda:2", c="preserve_format")
    assert recorder.last[0].index == 2 and recorder.last[2] is lamella.preserve_format
    op(3)
    assert str(recorder.last[0]) == "cuda:3"
    with pytest.raises(RuntimeError, match="expected a device like 'cpu' or 'cuda:1', got 'gpu'"):
        op("gpu")


def test_strings_dicts_and_anything(recorder):
    op = recorder.define("f(str a, Dict(str, int) b, Any c)")
    op("text", {"one": 1}, None)
    assert recorder.last == ("text", {"one": 1}, None)
    x = lamella.tensor([1.0])
    op("ö", {}, [1, (2.5, "x"), {"t": x}])
    name, empty, anything = recorder.last
    assert (name, empty) == ("ö", {})
    assert anything[0] == 1 and anything[1] == (2.5, "x") and anything[2]["t"] is x


def test_optional_tensor(recorder):
    op = recorder.define("f(Tensor? a, Tensor? b=None)")
    x = lamella.tensor(1.0)
    op(None)
    assert recorder.last == (None, None)
    op(x, x)
    assert recorder.last[0] is x and recorder.last[1] is x


def test_overloads_prefer_tensors(recorder):
    recorder.define("f.Scalar(Tensor self, Scalar other)")
    op = recorder.define("f.Tensor(Tensor self, Tensor other)")
    x = lamella.tensor([1.0])
    op(x, x)
    assert recorder.overload == "Tensor"
    op(x, lamella.tensor(2.0))
    assert recorder.overload == "Tensor"
    op(x, 2.0)
    assert recorder.overload == "Scalar"
    op(3, x)
    assert recorder.overload == "Tensor"
    first = recorder.last[0]
    assert first.dtype is lamella.int64 and first.dim() == 0 and first.item() == 3


def test_overloads_in_order(recorder):
    recorder.define("g.one(Tensor self, int dim)")
    recorder.define("g.two(Tensor self, int[] dims)")
    op = recorder.define("g.three(Tensor self, str name)")
    x = lamella.tensor(1.0)
    op(x, 1)
    assert recorder.overload == "one"
    op(x, [1, 2])
    assert recorder.overload == "two"
    op(x, "n")
    assert recorder.overload == "three"
    assert op.overloads() == ["one", "two", "three"]
    op.two(x, [4])
    assert recorder.overload == "two"
    assert op.two is op.two


def test_synonyms(recorder):
    op = recorder.define("f(Tensor self, int[1]? dim=None, bool keepdim=False)")
    x = lamella.tensor(1.0)
    op(x, axis=1, keepdims=True)
    assert recorder.last == (x, [1], True)
    op(x=x, axis=(0, 1))
    assert recorder.last == (x, [0, 1], False)
    with pytest.raises(TypeError, match="'axis': given by position and by keyword"):
        op(x, 1, axis=1)


def test_out(recorder):
    lib = recorder.library
    lib.define("f(Tensor self) -> Tensor")
    lib.define("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    lib.impl("f", lambda x: lamella.tensor(0.0), "CompositeImplicitAutograd")
    lib.impl("f.out", lambda x, *, out: out, "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).f
    x, y = lamella.tensor(1.0), lamella.tensor(2.0)
    assert op(x).item() == 0.0
    assert op(x, out=y) is y
    assert op(x, out=None).item() == 0.0
    with pytest.raises(TypeError, match="'out': expected Tensor, got int"):
        op(x, out=3)


def test_several_outs_and_named_returns(recorder):
    lib = recorder.library
    lib.define("f(Tensor self) -> (Tensor values, Tensor indices)")
    lib.define(
        "f.out(Tensor self, *, Tensor(a!) values, Tensor(b!) indices) -> "
        "(Tensor(a!) values, Tensor(b!) indices)"
    )
    lib.impl("f", lambda x: (x, lamella.tensor(1)), "CompositeImplicitAutograd")
    lib.impl("f.out", lambda x, *, values, indices: (values, indices), "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).f
    x, v, i = lamella.tensor(1.0), lamella.tensor(2.0), lamella.tensor(3)
    result = op(x)
    assert result.values is x and result.indices.item() == 1
    assert result[0] is x and len(result) == 2
    values, indices = op(x, out=(v, i))
    assert values is v and indices is i
    assert op(x, values=v, indices=i).values is v
    with pytest.raises(TypeError, match="'out': expected 2 tensors, got Tensor"):
        op(x, out=v)


def test_returns(recorder):
    lib = recorder.library
    kinds = {
        "int": 3,
        "float": 2.5,
        "bool": True,
        "str": "text",
        "Scalar": 1.5,
        "int[]": [1, 2],
        "float[]": [0.5],
        "bool[]": [True],
        "str[]": ["a"],
        "ScalarType": lamella.int8,
        "Device": lamella.device("meta"),
        "Layout": lamella.strided,
        "MemoryFormat": lamella.channels_last,
        "complex": 1 + 2j,
        "int?": None,
        "Dict(str, int)": {"a": 1},
    }
    for number, (kind, value) in enumerate(kinds.items()):
        lib.define(f"r{number}() -> {kind}")
        lib.impl(f"r{number}", lambda value=value: value, "CompositeImplicitAutograd")
        assert getattr(getattr(lamella.ops, recorder.ns), f"r{number}")() == value, kind
    x = lamella.tensor(1.0)
    lib.define("many() -> Tensor[]")
    lib.impl("many", lambda: [x, x], "CompositeImplicitAutograd")
    many = getattr(lamella.ops, recorder.ns).many()
    assert isinstance(many, (list, tuple)) and many[0] is x and many[1] is x
    lib.define("pair() -> (Tensor, int)")
    lib.impl("pair", lambda: (x, 2), "CompositeImplicitAutograd")
    assert getattr(lamella.ops, recorder.ns).pair() == (x, 2)


def test_identity_of_returned_arguments(recorder):
    lib = recorder.library
    lib.define("same_(Tensor(a!) self) -> Tensor(a!)")
    lib.impl("same_", lambda x: x, "CompositeImplicitAutograd")
    op = getattr(lamella.ops, recorder.ns).same_
    x = lamella.tensor(1.0)
    assert op(x) is x

    class Mine(lamella.Tensor):
        pass

    y = Mine([1.0, 2.0])
    y.note = "kept"
    assert op(y) is y and op(y).note == "kept"


def test_subclasses_are_tensors(recorder):
    op = recorder.define("f(Tensor a, Tensor[] b)")

    class Mine(lamella.Tensor):
        pass

    x = Mine([1.0])
    op(x, [x])
    assert recorder.last[0] is x and recorder.last[1][0] is x


def test_operators_that_come_and_go():
    lib = lamella.library.Library("comeandgo", "DEF")
    lib.define("f(int a) -> int")
    lib.impl("f", lambda a: a + 1, "CompositeImplicitAutograd")
    op = lamella.ops.comeandgo.f
    assert op(1) == 2
    lib.close()
    with pytest.raises(RuntimeError, match="comeandgo::f"):
        op(1)
    lib = lamella.library.Library("comeandgo", "DEF")
    lib.define("f(str a) -> str")
    lib.impl("f", lambda a: a + "!", "CompositeImplicitAutograd")
    assert op("a") == "a!"
    lib.define("f.two(int a, int b) -> int")
    lib.impl("f.two", lambda a, b: a * b, "CompositeImplicitAutograd")
    assert op(3, 4) == 12
    lib.close()


def test_no_leaks(recorder):
    import gc
    import sys

    op = recorder.define("f(Tensor a, int[] b, str c, Scalar d)")
    x = lamella.tensor([1.0])
    sizes = [1, 2, 3]
    text = "word" * 5

    def calls():
        for _ in range(50):
            op(x, sizes, text, 1.5)
            recorder.calls.clear()
            with pytest.raises(TypeError):
                op(x, sizes, text, "no")

    calls()
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(sizes), sys.getrefcount(text)
    calls()
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(sizes), sys.getrefcount(text)) == before


def nested(depth, inside):
    for _ in range(depth):
        inside = [inside]
    return inside


def endless():
    made = []
    made += [made, made]
    return made


@pytest.mark.parametrize("given", [endless(), nested(100_000, 1.0)], ids=["endless", "deep"])
def test_lists_without_an_end(recorder, given):
    x = lamella.ones(2)
    calls = [
        (lamella.cat, (given,)),
        (lamella.add, (x, given)),
        (x.view, (given,)),
        (lamella.zeros, (given,)),
        (lamella.stack, ([x, given],)),
        (lamella.add, (x, x), {"out": given}),
        (lamella.einsum, ("i->i", given)),
    ]
    for function, args, *kwargs in calls:
        with pytest.raises(TypeError) as error:
            function(*args, **(kwargs[0] if kwargs else {}))
        assert len(str(error.value)) < 3000
    for schema in ("any(Any a)", "lists(int[][] a)", "dicts(Dict(str, Any) a)"):
        op = recorder.define(schema)
        name = schema.partition("(")[0]
        with pytest.raises((ValueError, TypeError)) as error:
            op({"k": given} if name == "dicts" else given)
        if name != "lists":
            assert str(error.value) == (
                f"{name}: expected lists within lists to a depth of 100, got more"
            )
    assert recorder.define("fits(Any a)")(nested(98, 1)) is None


def test_what_a_list_without_an_end_is_called():
    with pytest.raises(TypeError) as error:
        lamella.cat(endless())
    assert str(error.value).splitlines()[0] == (
        "cat: got ([[[[...], [...]], [[...], [...]]], [[[...], [...]], [[...], [...]]]]), "
        "which does not fit"
    )


class Clears:
    """A number that empties a list when it is read."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 0

    def __float__(self):
        self.items.clear()
        return 0.5


def test_lists_that_change_while_they_are_read(recorder):
    op = recorder.define("f(Tensor[] a, int b)")
    tensors = [lamella.full((1000,), 7.0), lamella.full((1000,), 8.0)]
    op(tensors, Clears(tensors))
    assert [t[0].item() for t in recorder.last[0]] == [7.0, 8.0] and tensors == []
    tensors = [lamella.ones(2, 2), lamella.zeros(2, 2)]
    assert lamella.cat(tensors, Clears(tensors)).shape == (4, 2)
    for schema, last in (("g(int[] a)", [0, 2000, 3000]), ("h(float[] a)", [0.0, 2000.0, 3000.0])):
        op = recorder.define(schema)
        numbers = [None, 2000, 3000]
        numbers[0] = Clears(numbers)
        op(numbers)
        assert recorder.last == (last,)
    numbers = [None, 2000.0, lamella.ones(1)]
    numbers[0] = Clears(numbers)
    with pytest.raises(TypeError):
        recorder.define("i(Tensor[] a)")(numbers)


def test_errors_of_the_callers_own_pass_through(recorder):
    class Number:
        def __index__(self):
            raise KeyError("own")

    class Sequence:
        def __len__(self):
            raise ZeroDivisionError

        def __getitem__(self, i):
            raise ZeroDivisionError

    with pytest.raises(KeyError, match="own"):
        recorder.define("f(int a)")(Number())
    with pytest.raises(ZeroDivisionError):
        recorder.define("g(int[] a)")(Sequence())


def test_keywords_that_utf8_cannot_say():
    with pytest.raises(TypeError, match="unknown keyword '.udc80'"):
        lamella.add(lamella.ones(1), 1, **{"\udc80": 1})
