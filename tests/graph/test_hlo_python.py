"""lamella.hlo: modules read and run from Python, with arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lamella

IDENTITY = """HloModule m
ENTRY main {
  p0 = f32[2,3] parameter(0)
  p1 = s32[] parameter(1)
  ROOT t = (f32[2,3], s32[], f32[2,3]) tuple(p0, p1, p0)
}
"""


def one(element, dimensions="3"):
    return f"HloModule m\nENTRY main {{\n  ROOT p = {element}[{dimensions}] parameter(0)\n}}\n"


def test_the_package_loads_hlo_only_when_it_is_asked_for():
    code = (
        "import sys, lamella\n"
        "assert 'lamella._hlo' not in sys.modules\n"
        "lamella.hlo.parse\n"
        "assert 'lamella._hlo' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_runs_and_gives_a_list_of_tensors():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = lamella.hlo.evaluate(IDENTITY, x, 3)
    assert [type(r) for r in results] == [lamella.Tensor] * 3
    np.testing.assert_array_equal(results[0].numpy(), x)
    assert results[1].dtype == lamella.int32 and results[1].item() == 3


def test_results_are_memory_of_their_own():
    x = lamella.ones(2, 3)
    first, _, second = lamella.hlo.evaluate(IDENTITY, x, 3)
    first.zero_()
    assert x.sum().item() == 6 and second.sum().item() == 6


@pytest.mark.parametrize(
    "arguments, text",
    [
        (lambda x: (x,), "evaluate: expected 2 arguments for 'main', got 1"),
        (
            lambda x: (x.astype(np.float64), 3),
            "evaluate: expected argument 0 ('p0') to be f32[2,3], got f64[2,3]",
        ),
        (
            lambda x: (x.T, 3),
            "evaluate: expected argument 0 ('p0') to be f32[2,3], got f32[3,2]",
        ),
        (
            lambda x: (x, 3.5),
            "evaluate: expected argument 1 ('p1') to be s32[], got a number (float)",
        ),
        (lambda x: (x, "a"), "evaluate: expected argument 1 ('p1') to be s32[], got str"),
        (
            lambda x: (lamella.ones(2, 3, requires_grad=True), 3),
            "evaluate: expected a tensor that does not require grad, got one that does, whose "
            "gradient would be lost; use detach() or no_grad()",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, text):
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.evaluate(IDENTITY, *arguments(np.ones((2, 3), np.float32)))
    assert str(error.value) == text


# ---- Custom calls ------------------------------------------------------------------------------

DOUBLED = """HloModule doubled
ENTRY main {
  p0 = f32[3] parameter(0)
  ROOT c = (f32[3], s32[]) custom-call(p0), custom_call_target="python_doubles", \
backend_config="how"
}
"""


@pytest.fixture
def doubles():
    @lamella.hlo.custom_call_target("python_doubles")
    def twice(x, *, opaque, shape):
        assert opaque == b"how" and str(shape) == "(f32[3]{0}, s32[])"
        if x.isnan().any().item():
            raise LookupError("no doubles of NaN")
        return x.mul_(2), 7

    yield twice
    lamella.hlo.remove_custom_call_target("python_doubles")


def test_a_function_of_python_is_a_target(doubles):
    x = np.array([1, 2, 3], np.float32)
    first, second = lamella.hlo.evaluate(DOUBLED, x)
    assert first.tolist() == [2, 4, 6] and second.item() == 7
    assert x.tolist() == [1, 2, 3]
    assert "python_doubles" in lamella.hlo.custom_call_targets("cpu")


def test_an_exception_of_a_target_reaches_the_caller(doubles):
    with pytest.raises(LookupError, match="no doubles of NaN"):
        lamella.hlo.evaluate(DOUBLED, np.array([np.nan, 0, 0], np.float32))


def test_results_of_a_target_are_checked(doubles):
    lamella.hlo.custom_call_target("python_doubles")(lambda x: (x, 7.5))
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.evaluate(DOUBLED, lamella.ones(3))
    assert str(error.value) == (
        "hlo: 'c' (custom-call): target 'python_doubles': expected result 1 to be s32[], got a "
        "number (float)"
    )


def test_a_function_of_ctypes_is_a_target():
    import ctypes

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def negate(out, ins):
        floats = ctypes.POINTER(ctypes.c_float)
        source, result = ctypes.cast(ins[0], floats), ctypes.cast(out, floats)
        for i in range(3):
            result[i] = -source[i]

    text = """HloModule m
ENTRY main {
  p0 = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(p0), custom_call_target="ctypes_negates"
}
"""
    lamella.hlo.register_custom_call_target("ctypes_negates", negate, "cpu")
    try:
        assert lamella.hlo.evaluate(text, lamella.ones(3))[0].tolist() == [-1, -1, -1]
    finally:
        lamella.hlo.remove_custom_call_target("ctypes_negates")
    with pytest.raises(RuntimeError, match="'ctypes_negates'"):
        lamella.hlo.compile(text)


# ---- Elements ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element, name",
    [
        ("bf16", "bfloat16"),
        ("f8e5m2", "float8_e5m2"),
        ("f8e4m3fn", "float8_e4m3fn"),
        ("f8e4m3b11fnuz", "float8_e4m3b11fnuz"),
        ("f8e5m2fnuz", "float8_e5m2fnuz"),
        ("f8e4m3fnuz", "float8_e4m3fnuz"),
        ("f8e4m3", "float8_e4m3"),
        ("f8e3m4", "float8_e3m4"),
        ("f8e8m0fnu", "float8_e8m0fnu"),
        ("s4", "int4"),
        ("u4", "uint4"),
        ("s2", "int2"),
        ("u2", "uint2"),
    ],
)
def test_elements_that_numpy_knows_by_name_only(element, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = [1.0, 2.0, 0.5] if element[0] in "fb" else [1, 0, -1 if element[0] == "s" else 1]
    array = np.array(values, getattr(ml_dtypes, name))
    (result,) = lamella.hlo.evaluate(one(element), array)
    bits = result.view(lamella.uint8).numpy() if result.dtype.itemsize == 1 else None
    if bits is None:
        assert result.tolist() == values
    elif element[0] in "su":
        assert result.tolist() == [int(v) for v in array.astype(np.int32)]
    else:
        np.testing.assert_array_equal(bits, array.view(np.uint8))
    # What came out goes in again.
    (again,) = lamella.hlo.evaluate(one(element), result)
    assert again.view(lamella.uint8).tolist() == result.view(lamella.uint8).tolist()


@pytest.mark.parametrize(
    "element, name",
    [
        ("pred", "bool"),
        ("s8", "int8"),
        ("s16", "int16"),
        ("s32", "int32"),
        ("s64", "int64"),
        ("u8", "uint8"),
        ("u16", "uint16"),
        ("u32", "uint32"),
        ("u64", "uint64"),
        ("f16", "float16"),
        ("f32", "float32"),
        ("f64", "float64"),
        ("c64", "complex64"),
        ("c128", "complex128"),
    ],
)
def test_numpy_s_elements(element, name):
    array = np.array([1, 0, 1]).astype(name)
    for given in (array, array[::-1], np.stack([array, array], 1)[:, 0]):
        (result,) = lamella.hlo.evaluate(one(element), given)
        assert result.dtype == getattr(lamella, name)
        np.testing.assert_array_equal(result.numpy(), given)
    swapped = array.astype(array.dtype.newbyteorder())
    (result,) = lamella.hlo.evaluate(one(element), swapped)
    np.testing.assert_array_equal(result.numpy(), array)


def test_other_libraries_arrays():
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    text = one("f32")
    for given in (jax.numpy.ones(3), torch.ones(3), lamella.ones(3), [1, 1, 1]):
        assert lamella.hlo.evaluate(text, given)[0].tolist() == [1, 1, 1]
    for given in (jax.numpy.ones(3, jax.numpy.bfloat16), torch.ones(3).bfloat16()):
        assert lamella.hlo.evaluate(one("bf16"), given)[0].tolist() == [1, 1, 1]


def test_numbers_take_the_type_of_the_parameter():
    for element, number in [("f16", 2), ("f64", 0.1), ("s8", -3), ("pred", True), ("c64", 1 + 2j)]:
        (result,) = lamella.hlo.evaluate(one(element, ""), number)
        assert result.item() == number


def test_tuples_are_flattened_and_tokens_left_out():
    text = """HloModule m
ENTRY main {
  p0 = (f32[2], (s32[], token[])) parameter(0)
  p1 = token[] parameter(1)
  a = f32[2] get-tuple-element(p0), index=0
  ROOT t = ((f32[2], (s32[], token[])), token[], f32[2]) tuple(p0, p1, a)
}
"""
    x = lamella.ones(2)
    for arguments in ((x, 3), ((x, (3, None)), None)):
        results = lamella.hlo.evaluate(text, *arguments)
        assert [r.tolist() for r in results] == [[1, 1], 3, [1, 1]]


# ---- Modules -----------------------------------------------------------------------------------


def test_a_module_can_be_walked():
    module = lamella.hlo.parse(
        """HloModule walk, entry_computation_layout={(f32[4]{0})->f32[2]{0}}
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  w = f32[2] reduce-window(x, zero), window={size=2 stride=2}, to_apply=add, \
metadata={op_name="jit(f)/reduce" source_file="f.py" source_line=3}
  s = f32[2] slice(x), slice={[0:4:2]}
  ROOT r = f32[2] add(w, s)
}
"""
    )
    assert module.name == "walk" and module.instruction_count == 8
    assert [c.name for c in module.computations] == ["add", "main"]
    main = module.entry
    assert main.is_entry and main.signature == "(x: f32[4]{0}) -> f32[2]{0}"
    x, zero, w, s, r = main.instructions
    assert (x.opcode, x.parameter_number, str(x.shape)) == ("parameter", 0, "f32[4]{0}")
    assert zero.literal.item() == 0 and x.literal is None
    assert w.operands == (x, zero) and w.computation == main and r.is_root and main.root == r
    assert w.attributes["to_apply"] == module.computation("add")
    assert w.attributes["window"][0]["stride"] == 2
    assert s.attributes == {"slice": ((0, 4, 2),)}
    assert w.metadata == {"op_name": "jit(f)/reduce", "source_file": "f.py", "source_line": 3}
    assert s.to_string() == "s = f32[2]{0} slice(x), slice={[0:4:2]}"
    assert "%x" in module.to_string(percent=True)
    assert "metadata" not in module.to_string(metadata=False)
    again = lamella.hlo.parse(str(module))
    assert again == module and hash(again) == hash(module) and again.entry != main
    module.verify()
    with pytest.raises(IndexError, match="expected one of 'walk', got 'none'"):
        module.computation("none")


def test_shapes():
    import pickle

    Shape = lamella.hlo.Shape
    shape = Shape("(f32[2,3]{0,1}, s32[], token[])")
    array, scalar, token = shape.tuple_shapes
    assert shape.is_tuple and not shape.is_array and token.is_token and scalar.dimensions == ()
    assert (array.element_type, array.dimensions, array.layout) == ("f32", (2, 3), (0, 1))
    assert (array.rank, array.elements, array.bytes) == (2, 6, 24)
    assert array != Shape("f32[2,3]") and array.compatible("f32[2,3]")
    assert Shape.array("f32", [2, 3], [0, 1]) == array
    assert Shape.tuple([array, "s32[]", Shape.token()]) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape and hash(Shape(str(shape))) == hash(shape)
    assert array.to_string(layout=False) == "f32[2,3]" and repr(scalar) == "Shape('s32[]')"
    with pytest.raises(RuntimeError):
        Shape("f32[2,")


# ---- What failed -------------------------------------------------------------------------------


def bundle_of(error):
    lines = str(error.value).splitlines()
    assert lines[-2] == "To replay it (at most 20 such folders and 1 GiB are kept):"
    assert lines[-1].startswith("lamella hlo run ")
    return lines[:-2], lines[-1].split()[-1]


def replay(path, *options, status=1):
    command = [sys.executable, "-m", "lamella", "hlo", "run", path, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr


def test_a_failed_compilation_can_be_replayed(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMELLA_BUNDLES", str(tmp_path))
    text = one("f32").replace("p =", 'q = f32[3] custom-call(), custom_call_target="nobody"\n  p =')
    text = text.replace("ROOT q", "q").replace("q = f32[3] custom", "ROOT q = f32[3] custom")
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.compile(text)
    lines, path = bundle_of(error)
    assert "'nobody'" in lines[0]
    assert replay(path, status=2) == f"lamella: {lines[0]}\n"


def test_a_failed_run_can_be_replayed(monkeypatch, tmp_path, doubles):
    monkeypatch.setenv("LAMELLA_BUNDLES", str(tmp_path))
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.custom_call_target("python_doubles")(fails_at)
        lamella.hlo.evaluate(DOUBLED, np.array([5, 0, 0], np.float32))
    lines, path = bundle_of(error)
    assert lines == ["no more than 4.0, got 5.0"]
    assert replay(path, status=2) == (
        f"lamella: hlo: {path}: expected --trust, to load and run the code that the folder names:\n"
        f"  'python_doubles': Python's {__name__}.fails_at ({__file__})\n"
    )
    assert replay(path, "--trust") == "lamella: hlo: no more than 4.0, got 5.0\n"


def fails_at(x, limit=4.0):
    raise RuntimeError(f"no more than {limit}, got {x[0].item()}")


def test_few_bundles_are_kept_and_mistakes_leave_none(monkeypatch, tmp_path):
    monkeypatch.setenv("LAMELLA_BUNDLES", str(tmp_path))
    with pytest.raises(RuntimeError):
        lamella.hlo.evaluate(one("f32"), 3)
    assert list(tmp_path.iterdir()) == []
    for _ in range(23):
        with pytest.raises(RuntimeError):
            lamella.hlo.compile("HloModule m\nnothing\n")
    assert len(list(tmp_path.iterdir())) == 20
    monkeypatch.setenv("LAMELLA_BUNDLES", "/proc/nowhere")
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.compile("HloModule m\nnothing\n")
    assert "hlo run" not in str(error.value)


def test_bundles_are_bounded(monkeypatch, tmp_path):
    import os

    from lamella.hlo import _bundle

    monkeypatch.setenv("LAMELLA_BUNDLES", str(tmp_path))
    monkeypatch.setattr(_bundle, "_LARGEST_INPUTS", 2 << 20)
    monkeypatch.setattr(_bundle, "_LARGEST_FOLDER", 3 << 20)
    abandoned = tmp_path / ".partial-old"
    abandoned.mkdir()
    os.utime(abandoned, (0, 0))
    fill = "HloModule m\n//" + "x" * (5 << 18) + "\nnothing\n"
    for _ in range(5):
        with pytest.raises(RuntimeError):
            lamella.hlo.compile(fill)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(RuntimeError) as error:
        lamella.hlo.compile("HloModule m\n//" + "x" * (3 << 20) + "\nnothing\n")
    assert "hlo run" not in str(error.value)


@pytest.mark.parametrize(
    "facts, said",
    [
        ("[" * 100000, "expected a bundle, got "),
        ("[]", "expected a bundle of format 1, got something else"),
        ('{"format": 2}', "expected a bundle of format 1, got 2"),
        ('{"format": 1}', "expected a bundle whose bundle.json has a valid 'options'"),
        (
            '{"format": 1, "options": {"platform": "Host"}, "inputs": -1, "targets": []}',
            "expected a bundle whose bundle.json has a valid 'inputs'",
        ),
        (
            '{"format": 1, "options": {"platform": "Host"}, "inputs": 1e9, "targets": []}',
            "expected a bundle whose bundle.json has a valid 'inputs'",
        ),
        (
            '{"format": 1, "options": {"platform": "Host"}, "inputs": 0, "targets": [{"name": "a",'
            ' "platform": "Host", "kind": "plain", "places": {"execute": ["libc.so.6", -1]}}]}',
            "expected a bundle whose bundle.json has a valid 'targets'",
        ),
    ],
)
def test_broken_bundles_are_refused(tmp_path, facts, said):
    (tmp_path / "bundle.json").write_text(facts)
    (tmp_path / "module.hlo").write_text(one("f32"))
    out = replay(str(tmp_path), "--trust", status=2)
    assert out.startswith(f"lamella: hlo: {tmp_path}: {said}")


LIBRARY = """
#include <stddef.h>
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
void XlaCustomCallStatusSetFailure(XlaCustomCallStatus*, const char*, size_t);
static void refuse(void* out, const void** in, XlaCustomCallStatus* status) {
  XlaCustomCallStatusSetFailure(status, "no more today", 13);
}
void* refuser(void) { return (void*)refuse; }
"""


def test_a_target_of_a_library_is_found_again(monkeypatch, tmp_path):
    import ctypes
    import shutil

    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "refuse.c").write_text(LIBRARY)
    library = tmp_path / "librefuse.so"
    source = tmp_path / "refuse.c"
    with open("/proc/self/maps") as maps:
        graph = next(line.split()[-1] for line in maps if "liblamella_graph" in line)
    rpath = f"-Wl,-rpath,{graph.rpartition('/')[0]}"
    command = [compiler, "-shared", "-fPIC", "-o", library, source, graph, rpath]
    subprocess.run(command, check=True)
    refuser = ctypes.CDLL(str(library)).refuser
    refuser.restype = ctypes.c_void_p
    # A function that is in no symbol table.
    lamella.hlo.register_custom_call_target("library_refuses", refuser())
    text = """HloModule m
ENTRY main {
  p = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(p), custom_call_target="library_refuses", \
api_version=API_VERSION_STATUS_RETURNING
}
"""
    monkeypatch.setenv("LAMELLA_BUNDLES", str(tmp_path / "bundles"))
    try:
        with pytest.raises(RuntimeError) as error:
            lamella.hlo.evaluate(text, lamella.ones(2))
    finally:
        lamella.hlo.remove_custom_call_target("library_refuses")
    lines, path = bundle_of(error)
    assert "'c'" in lines[0] and "no more today" in lines[0]
    said = replay(path, status=2)
    assert said.startswith(f"lamella: hlo: {path}: expected --trust, to load and run the code that")
    assert f"  'library_refuses': machine code of {library} at byte " in said
    assert replay(path, "--trust") == f"lamella: {lines[0]}\n"


def test_threads_run_one_executable():
    # Replays import this module alone, without the folders of the others.
    from in_threads import in_threads

    text = """HloModule m
ENTRY main {
  p = f32[200,200] parameter(0)
  ROOT d = f32[200,200] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    executable = lamella.hlo.compile(text)
    wrong = []

    def work(number):
        x = np.full((200, 200), number, np.float32)
        for _ in range(3):
            (result,) = executable(x)
            if not (result.numpy() == 200 * number * number).all():
                wrong.append(number)

    in_threads(work, over=range(4))
    assert wrong == []


def test_element_types_are_those_of_the_table():
    names = {text for text, _, _ in lamella._hlo._element_types}
    assert names == {str(member) for member in lamella.hlo.ElementType}
    assert lamella.hlo.ElementType.F32 == "f32" == lamella.hlo.Shape("f32[]").element_type


def test_files_of_text(tmp_path):
    module = lamella.hlo.parse(IDENTITY)
    lamella.hlo.save(module, tmp_path / "m.hlo")
    assert lamella.hlo.load(tmp_path / "m.hlo") == module


def test_compile_checks_what_it_is_given():
    with pytest.raises(TypeError) as error:
        lamella.hlo.compile(3)
    assert str(error.value) == "compile: expected a Module or the text of one, got int"
    executable = lamella.hlo.compile(IDENTITY)
    assert str(executable.output_shape) == "(f32[2,3]{1,0}, s32[], f32[2,3]{1,0})"
    assert [str(s) for s in executable.input_shapes] == ["f32[2,3]{1,0}", "s32[]"]
    assert executable.module.name == "m" and executable.platform == "Host"
    with pytest.raises(TypeError, match="expected no keyword arguments"):
        executable(x=1)
