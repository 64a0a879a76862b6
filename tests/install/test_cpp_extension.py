"""lamella.utils.cpp_extension: extensions from C++ text and from files, in a process that uses the
installed tree, as users do."""

import os
import subprocess
import sys
import textwrap

import pytest
from build_tree import PREFIX

PYBIND = """
torch::Tensor scaled(torch::Tensor x, double factor, c10::optional<torch::Tensor> other) {
  return other.has_value() ? x * factor + *other : x * factor;
}
at::ScalarType kind(at::ScalarType type, at::Device, at::IntArrayRef sizes, at::Scalar) {
  TORCH_CHECK(sizes.size() > 0, "no sizes")  // PyTorch's needs no semicolon
  TORCH_CHECK_EQ(sizes.size(), 2) << "sizes";
  if (sizes[0] == 7) TORCH_CHECK_INDEX(false, "expected no ", sizes[0]);
  return type;
}
// Indexing as in Python, numbers in the source, accessors, older spellings, threads, streams.
std::vector<torch::Tensor> parts() {
  using namespace torch::indexing;
  torch::Tensor a = torch::tensor({{1, 2}, {3, 4}});
  torch::Tensor column = a.index({Slice(), 0}).clone();
  a.index_put_({0, Slice(1, None)}, 9);
  torch::Tensor large = a.index({a > 2});
  torch::Tensor last = a.index({"...", -1, None});
  a[0][0] = 5;
  int64_t number = a.packed_accessor32<int64_t, 2>()[0][0] + a.data<int64_t>()[1];
  AT_DISPATCH_ALL_TYPES(a.type(), "parts", [&] { number += a.data_ptr<scalar_t>()[2]; });
  std::vector<double> sums(at::get_num_threads());
  at::parallel_for(0, 100000, 10, [&](int64_t begin, int64_t end) {
    sums[at::get_thread_num()] += end - begin;
  });
  double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return {a, column, large, last, torch::tensor(sum), torch::tensor(number)};
}
std::string text(torch::Tensor x) {
  std::ostringstream out;
  out << x << x.sizes() << x.dtype() << x.device() << x.type();
  return out.str();
}
double sum_in_order(int64_t count) {
  return at::parallel_reduce(0, count, 1000, 0.0,
      [](int64_t begin, int64_t end, double sum) {
        for (int64_t i = begin; i < end; ++i) sum += 1.0 / (1.0 + i);
        return sum;
      },
      [](double a, double b) { return a + b; });
}
bool any_equal(int64_t count, int64_t wanted) {
  return at::parallel_reduce(0, count, 1, false,
      [&](int64_t begin, int64_t end, bool found) {
        return found || (begin <= wanted && wanted < end);
      },
      [](bool a, bool b) { return a || b; });
}
void refuse() {
  at::parallel_for(0, 1000, 1, [](int64_t, int64_t) { TORCH_CHECK_VALUE(false, "expected less"); });
}
void throw_python_error(bool persist) {
  PyErr_SetString(PyExc_KeyError, "absent");
  python_error error;
  if (persist) error.persist();
  TORCH_CHECK((PyErr_Occurred() == nullptr) == persist);
  throw error;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("throw_python_error", &throw_python_error);
  m.def("scaled", &scaled, py::arg("x"), py::arg("factor") = 2.0, py::arg("other") = py::none());
  m.def("kind", &kind);
  m.def("parts", &parts);
  m.def("text", &text);
  m.def("sum_in_order", &sum_in_order);
  m.def("any_equal", &any_equal);
  m.def("refuse", &refuse);
  m.def("memory", [](const at::Tensor& x) { return x.storage(); });
  m.def("half", []() { return c10::SymFloat(0.5); });
}
"""

USE_PYBIND = """
    import pytest
    import lamella
    from lamella.utils import cpp_extension

    folder, text = sys.argv[1:]
    module = cpp_extension.load_inline("parts_ext", text, build_directory=folder)
    x = lamella.arange(3.0)
    assert module.scaled(x).tolist() == [0, 2, 4]
    assert module.scaled(x, factor=3, other=x).tolist() == [0, 4, 8]
    assert module.kind(lamella.float64, "cpu", [1, 2], 3.0) is lamella.float64
    cpu, three = lamella.device("cpu"), lamella.tensor(3)
    assert module.kind(lamella.int32, cpu, (1, 2), three) is lamella.int32
    a, column, large, last, total, number = module.parts()
    assert a.tolist() == [[5, 9], [3, 4]] and column.tolist() == [1, 3]
    assert large.tolist() == [9, 3, 4] and last.tolist() == [[9], [4]]
    assert total.item() == 100000 and number.item() == 5 + 9 + 3
    memory = module.memory(x[1:])
    assert memory.data_ptr() == x.data_ptr() and memory.nbytes() == 12
    assert module.half() == 0.5
    assert module.text(x) == " 0\\n 1\\n 2\\n[ CPUFloatType{3} ][3]floatcpuCPUFloatType"
    sums = set()
    for threads in (1, 2, 3, 8):
        lamella.set_num_threads(threads)
        sums.add(module.sum_in_order(100_001))
    assert len(sums) == 1
    found = [module.any_equal(n, 70_000) for n in (0, 1, 70_000, 70_001, 1_000_000)]
    assert found == [False, False, False, True, True]
    for call, error, message in [
        (lambda: module.kind(lamella.int32, "cpu", [7, 1], 1), IndexError, "expected no 7"),
        (lambda: module.kind(lamella.int32, "cpu", [7], 1), RuntimeError,
         "expected sizes.size() == 2, got 1 and 2. sizes"),
        (module.refuse, ValueError, "expected less"),
        (lambda: module.throw_python_error(False), KeyError, "'absent'"),
        (lambda: module.throw_python_error(True), KeyError, "'absent'"),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message
    with pytest.raises(TypeError):
        module.scaled(3)
"""

# A module that pybind11 does not make: functions of Python's C API, whose errors are Python's.
PLAIN = """
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
static PyObject* halved(PyObject*, PyObject* argument) {
  HANDLE_TH_ERRORS
  if (!THPVariable_Check(argument)) throw pybind11::type_error("halved: expected a tensor");
  at::Tensor x = THPVariable_Unpack(argument);
  TORCH_CHECK_VALUE(x.numel() > 0, "halved: expected values");
  if (x.dim() > 1) throw std::length_error("halved: expected a vector");
  if (x.dim() == 0) pybind11::module_::import("math").attr("sqrt")(-1.0);
  return THPVariable_Wrap(x / 2);
  END_HANDLE_TH_ERRORS
}
static PyMethodDef functions[] = {{"halved", halved, METH_O, nullptr}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain_ext", nullptr, -1, functions};
PyMODINIT_FUNC PyInit_plain_ext() { return PyModule_Create(&definition); }
"""

USE_PLAIN = """
    import pytest
    import lamella
    from lamella.utils import cpp_extension

    folder, text = sys.argv[1:]
    module = cpp_extension.load_inline("plain_ext", text, build_directory=folder)
    x = lamella.arange(3.0, requires_grad=True)
    y = module.halved(x)
    assert y.tolist() == [0, 0.5, 1] and y.requires_grad
    for wrong, error, message in [
        (None, TypeError, "halved: expected a tensor"),
        (3, TypeError, "halved: expected a tensor"),
        (lamella.ones(0), ValueError, "halved: expected values"),
        (lamella.ones(2, 2), RuntimeError, "halved: expected a vector"),
        (lamella.tensor(1.0), ValueError, None),
    ]:
        with pytest.raises(error) as caught:
            module.halved(wrong)
        assert message in (None, str(caught.value))
"""

OPERATORS = """
#include <torch/script.h>
std::tuple<torch::Tensor, torch::optional<torch::Tensor>> pair(
    torch::Tensor x, c10::List<int64_t> dims, torch::optional<std::string> mode) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims.size(); ++i) sizes.push_back(dims[i]);
  torch::optional<torch::Tensor> second;
  if (mode.has_value() && *mode == "both") second = x + 1;
  return {x.reshape(sizes), second};
}
int64_t count(const std::vector<c10::optional<torch::Tensor>>& xs, std::vector<bool> flags,
              c10::optional<std::vector<int64_t>> more) {
  int64_t found = 0;
  for (const auto& x : xs) found += x.has_value();
  for (bool flag : flags) found += 10 * flag;
  return found + (more.has_value() ? 100 * static_cast<int64_t>(more->size()) : 0);
}
c10::Dict<std::string, torch::Tensor> doubled(const c10::Dict<std::string, torch::Tensor>& given) {
  c10::Dict<std::string, torch::Tensor> result;
  for (const auto& entry : given) result.insert(entry.key(), entry.value() * 2);
  return result;
}
std::vector<std::vector<int64_t>> rows(std::vector<std::vector<int64_t>> given) {
  for (auto& row : given) row.push_back(0);
  return given;
}
static auto registry =
    torch::RegisterOperators()
        .op("cpp_extension_test::pair", &pair)
        .op("cpp_extension_test::count(Tensor?[] xs, bool[] flags, int[]? more) -> int", &count)
        .op("cpp_extension_test::negative(Tensor x) -> Tensor",
            torch::RegisterOperators::options().kernel(
                c10::DispatchKey::CPU, [](const torch::Tensor& x) { return -x; }));
TORCH_LIBRARY_FRAGMENT(cpp_extension_test, m) {
  m.def("doubled(Dict(str, Tensor) given) -> Dict(str, Tensor)", &doubled);
  m.def("rows(int[][] given) -> int[][]", &rows);
}
"""

USE_OPERATORS = """
    import lamella
    from lamella.utils import cpp_extension

    folder, text = sys.argv[1:]
    with open(os.path.join(folder, "operators.cpp"), "w") as file:
        file.write(text)
    path = cpp_extension.load(
        "operators_ext", os.path.join(folder, "operators.cpp"), build_directory=folder,
        is_python_module=False,
    )
    assert os.path.exists(path)
    ops = lamella.ops.cpp_extension_test
    x = lamella.arange(4.0)
    first, second = ops.pair(x, [2, 2], None)
    assert first.shape == (2, 2) and second is None
    assert ops.pair(x, [4], "both")[1].tolist() == [1, 2, 3, 4]
    assert ops.count([x, None, x], [True, False, True], None) == 22
    assert ops.count([], [], [1, 2, 3]) == 300
    assert ops.negative(x).tolist() == [0, -1, -2, -3]
    assert {k: v.tolist() for k, v in ops.doubled({"a": x, "b": x[:1]}).items()} == {
        "a": [0, 2, 4, 6], "b": [0]}
    assert ops.rows([[1], [], [2, 3]]) == [[1, 0], [0], [2, 3, 0]]
"""


# A generator of a class of the extension's own, which its kernel draws from.
GENERATOR = """
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/cpu/DistributionTemplates.h>
struct Constant : c10::GeneratorImpl {
  explicit Constant(uint64_t value)
      : GeneratorImpl(at::kCPU, c10::DispatchKeySet(c10::DispatchKey::CustomRNGKeyId)),
        value(value) {}
  uint32_t random() { return value; }
  uint64_t random64() { return value; }
  void set_current_seed(uint64_t seed) override { value = seed; }
  uint64_t current_seed() const override { return value; }
  uint64_t seed() override { return value; }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl&) override {}
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return {}; }
  Constant* clone_impl() const override { return new Constant(value); }
  static at::DeviceType device_type() { return at::kCPU; }
  uint64_t value;
};
at::Tensor& random_(at::Tensor& self, std::optional<at::Generator> generator) {
  namespace templates = at::native::templates;
  return templates::random_impl<templates::cpu::RandomKernel, Constant>(self, generator);
}
TORCH_LIBRARY_IMPL(aten, CustomRNGKeyId, m) { m.impl("random_", random_); }
at::Generator constant(uint64_t value) { return at::make_generator<Constant>(value); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("constant", &constant); }
"""
USE_GENERATOR = """
    import pytest
    import lamella
    from lamella.utils import cpp_extension

    folder, text = sys.argv[1:]
    module = cpp_extension.load_inline("generator_ext", text, build_directory=folder)
    constant = module.constant(42)
    x = lamella.empty(3, dtype=lamella.int64)
    assert x.random_(generator=constant).tolist() == [42, 42, 42]
    assert x.random_(generator=lamella.Generator()).tolist() != [42, 42, 42]
    refused = "Generator: expected a generator of Lamella, got one of a class of its own"
    uses = [constant.initial_seed, constant.seed, lambda: constant.device, lambda: repr(constant)]
    for use in uses:
        with pytest.raises(RuntimeError) as caught:
            use()
        assert str(caught.value) == refused
"""


def in_a_process(body, *arguments):
    environment = dict(os.environ, PYTHONPATH=str(PREFIX / "lib" / "python"))
    code = "import os, sys\n" + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


NETWORK = """
struct Net : torch::nn::Cloneable<Net> {
  explicit Net(int64_t size) : size(size) { reset(); }
  void reset() override {
    inner = register_module("inner", torch::nn::Linear(size, 1));
    scale = register_buffer("scale", torch::full({1}, 2.0));
  }
  torch::Tensor forward(torch::Tensor x) { return inner->forward(x) * scale; }
  void grow() { register_parameter("bias", torch::zeros({1})); }
  int64_t size;
  torch::nn::Linear inner{nullptr};
  torch::Tensor scale;
};
struct Pair : torch::nn::Module {
  torch::Tensor forward(torch::Tensor a, torch::Tensor b) { return a + b; }
};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  torch::python::bind_module<Net>(m, "Net").def(py::init<int64_t>()).def("grow", &Net::grow);
  torch::python::bind_module<Pair, true>(m, "Pair").def(py::init<>()).def("sum", &Pair::forward);
}
"""

USE_NETWORK = """
    import lamella
    from lamella.utils import cpp_extension
    made = cpp_extension.load_inline("networks", sys.argv[2], build_directory=sys.argv[1])
    net = made.Net(3)
    both = lamella.nn.Sequential(net, lamella.nn.Tanh())
    assert isinstance(net, lamella.nn.Module) and type(net).__name__ == str(net) == "Net"
    assert [name for name, _ in both.named_parameters()] == ["0.inner.weight", "0.inner.bias"]
    assert [name for name, _ in both.named_modules()] == ["", "0", "0.inner", "1"]
    assert list(both.state_dict()) == ["0.scale", "0.inner.weight", "0.inner.bias"]
    x = lamella.ones(2, 3)
    expected = lamella.nn.functional.linear(x, net.inner.weight, net.inner.bias) * 2
    assert lamella.equal(net(x), expected) and lamella.equal(both(x), expected.tanh())
    both(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    both.double()
    assert net(x.double()).dtype == net.scale.dtype == net.buffers()[0].dtype == lamella.float64
    twin = net.clone()
    with lamella.no_grad():
        twin.named_parameters()["inner.bias"].add_(1)
    assert lamella.equal(twin(x.double()), net(x.double()) + 2)
    assert net.training and not net.eval().training and not net.inner.training
    assert both.train() is both and net.training and net.inner is net.children()[0]
    net.grow()
    assert net.named_parameters(recurse=False)[0][0] == "bias" and net.bias.numel() == 1
    assert dict(net.named_buffers()).keys() == {"scale"}
    try:
        net.other = lamella.nn.Parameter(x)
    except KeyError as error:
        assert error.args == (
            "Module: expected a name that the C++ class registers, got 'other'",
        ), error.args
    else:
        raise AssertionError
    assert made.Pair().sum(x, x).sum() == 12 and not hasattr(made.Pair(), "absent")
"""


@pytest.mark.parametrize(
    "text, use",
    [
        (PYBIND, USE_PYBIND),
        (PLAIN, USE_PLAIN),
        (OPERATORS, USE_OPERATORS),
        (GENERATOR, USE_GENERATOR),
        (NETWORK, USE_NETWORK),
    ],
    ids=["pybind", "plain", "operators", "generator", "network"],
)
def test_load(tmp_path, text, use):
    in_a_process(use, str(tmp_path), text)


RELOADED = """
#include <Python.h>
static PyObject* f(PyObject*, PyObject*) { return PyLong_FromLong(NUMBER); }
static PyMethodDef methods[] = {{"f", f, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "reloaded", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_reloaded() { return PyModule_Create(&module); }
"""


def test_loads_what_was_built_anew_and_reads_flags_as_a_shell(tmp_path):
    use = """
    import warnings
    from lamella.utils import cpp_extension
    def load(number, text="", **kwargs):
        flags = [f"-g0\\n\\n", f" -O0 '-DNUMBER={number}'"]
        return cpp_extension.load_inline("reloaded", sys.argv[2] + text, extra_cflags=flags,
            extra_include_paths=["  . \\n"], build_directory=sys.argv[1],
            no_implicit_headers=True, **kwargs)
    first = load(123)
    assert first.f() == 123 and load(123).f() == 123
    assert load(456).f() == 456 and load(456).f() == 456 and first.f() == 123
    assert load(456, "// more").f() == 456
    def warning(kind, handling):
        return cpp_extension.load_inline("warning",
            f"int f(int x) {{ {kind}; TORCH_CHECK(x > 0, \\"less\\"); return x; }}", functions="f",
            build_directory=sys.argv[1], with_pytorch_error_handling=handling)
    plain, ours = warning('TORCH_WARN("plain")', False), warning('TORCH_WARN("of ", x)', True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert plain.f(1) == 1 and not seen and ours.f(2) == 2
        try:
            ours.f(-1)
        except RuntimeError as error:
            assert "less" in str(error)
        assert [str(one.message) for one in seen] == ["of 2", "of -1"]
        warnings.simplefilter("error")
        for value, kind, text in ((1, UserWarning, "of 1"), (-1, RuntimeError, "less")):
            try:
                ours.f(value)
            except kind as error:
                assert str(error) == text
            else:
                raise AssertionError
    try:
        load(1, functions=5)
    except ValueError as error:
        assert str(error) == (
            "load_inline: expected 'functions' to be a str, a list or a dict, got int"), error
    else:
        raise AssertionError
    """
    in_a_process(use, str(tmp_path), RELOADED)


def test_says_what_the_compiler_said(tmp_path):
    use = """
    from lamella.utils import cpp_extension
    for text, flags, expected in [
        ("int f() { return nothing; }", [], "Error building extension 'bad'"),
        ("", ["-DSPARE"], None),
    ]:
        try:
            cpp_extension.load_inline("bad", text, extra_cflags=flags, build_directory=sys.argv[1],
                                      functions=["f"] if expected else [])
        except RuntimeError as error:
            assert expected and str(error).startswith(expected) and "nothing" in str(error), error
        else:
            assert expected is None
    """
    in_a_process(use, str(tmp_path))


def test_older_standard_is_the_first_line_of_the_error(tmp_path):
    source = tmp_path / "old.cpp"
    source.write_text("#include <torch/library.h>\n")
    include = PREFIX / "include"
    done = subprocess.run(
        [
            "c++",
            "-std=c++17",
            "-fsyntax-only",
            f"-I{include}",
            f"-I{include}/lamella_compat",
            source,
        ],
        capture_output=True,
        text=True,
    )
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert "Lamella's headers are C++20: compile with -std=c++20" in errors[0]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("// Nothing of networks.", False),
        ("struct Net : torch::nn::Module {};", True),
        ("#include <torch/optim.h>", True),
        ("using namespace torch;", True),
    ],
)
def test_reads_networks_where_they_are_spoken_of(tmp_path, header, wanted):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "parts.h").write_text(header)
    (tmp_path / "plain.cpp").write_text(
        "#include <torch/torch.h>\n"
        "#ifdef LAMELLA_OPTION\n"  # a macro of modules
        "bool has_networks() { return true; }\n"
        "#else\n"
        "bool has_networks() { return false; }\n"
        "#endif\n"
        'TORCH_LIBRARY(plain, m) { m.def("has_networks() -> bool", &has_networks); }\n'
    )
    use = """
    import lamella
    from lamella.utils import cpp_extension
    cpp_extension.load("plain", [sys.argv[1] + "/plain.cpp"], build_directory=sys.argv[1],
                       is_python_module=False)
    assert lamella.ops.plain.has_networks() is (sys.argv[2] == "True")
    """
    in_a_process(use, str(tmp_path), str(wanted))
