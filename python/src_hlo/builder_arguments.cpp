// Conversion of Python arguments of the builder's functions.
#include <strings.h>

#include <cstring>

#include "lamella/graph/runtime/tensor_value.h"
#include "python/src_hlo/builder.h"

namespace lamella::python {

using hlo::ElementType;

void wrong_argument(const Argument& argument, const char* expected) {
  if (argument.object == nullptr) {
    PyErr_Format(PyExc_TypeError, "%s: expected '%s'", argument.all.function, argument.name);
  } else {
    PyErr_Format(PyExc_TypeError, "%s: expected '%s' to be %s, got %s", argument.all.function,
                 argument.name, expected, Py_TYPE(argument.object)->tp_name);
  }
  throw PythonError();
}

namespace {

// The items of a list or tuple (or any sequence that is not text).
Ref items_from(const Argument& argument, PyObject* object, const char* expected) {
  if (object == nullptr || PyUnicode_Check(object) || PyBytes_Check(object) ||
      !PySequence_Check(object)) {
    wrong_argument({object, argument.name, argument.all}, expected);
  }
  return Ref(required(PySequence_Fast(object, expected)));
}
std::span<PyObject*> span_of(const Ref& items) {
  return {PySequence_Fast_ITEMS(items.get()),
          static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get()))};
}
bool is_absent(const Argument& a) { return a.object == nullptr || a.object == Py_None; }
const Argument& needed(const Argument& a) {
  if (a.object == nullptr) wrong_argument(a, "");
  return a;
}
// Whether an argument holds indices or sizes: its numbers are integers whatever the other operands.
bool counts(const char* name) {
  return strstr(name, "indices") != nullptr || strstr(name, "index") != nullptr ||
         strcmp(name, "val") == 0 || strcmp(name, "dim_sizes") == 0;
}
bool flag_from(const Argument& a, PyObject* object) {
  int truth = PyObject_IsTrue(object);
  if (truth < 0) throw PythonError();
  if (!PyBool_Check(object) && !PyLong_Check(object)) wrong_argument(a, "a bool");
  return truth != 0;
}
std::vector<bool> flags_from(const Argument& a) {
  std::vector<bool> flags;
  Ref items = items_from(a, a.object, "a sequence of bool");
  for (PyObject* item : span_of(items)) flags.push_back(flag_from(a, item));
  return flags;
}
bool is_number(PyObject* object) {
  return PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object);
}

}  // namespace

int64_t integer_from(const Argument& argument, PyObject* object) {
  if (object == nullptr || PyFloat_Check(object) || !PyIndex_Check(object)) {
    wrong_argument({object, argument.name, argument.all}, "an int");
  }
  Ref index(required(PyNumber_Index(object)));
  long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

std::vector<int64_t> integers_from(const Argument& argument, PyObject* object) {
  std::vector<int64_t> numbers;
  Ref items = items_from(argument, object, "a sequence of int");
  for (PyObject* item : span_of(items)) numbers.push_back(integer_from(argument, item));
  return numbers;
}

hlo::Op op_from(const Argument& argument, PyObject* object) {
  if (object != nullptr && Py_TYPE(object) == op_type) return held<OpHandle>(object).op;
  if (object == nullptr || PyUnicode_Check(object) || object == Py_None) {
    wrong_argument({object, argument.name, argument.all}, "an Op, a number or an array");
  }
  ElementType type = ElementType::Invalid;
  if (is_number(object)) {
    type = counts(argument.name) ? ElementType::S32 : argument.all.number_type;
  }
  if (argument.all.builder == nullptr) {
    wrong_argument({object, argument.name, argument.all}, "an Op");
  }
  return hlo::ConstantLiteral({argument.all.builder.get(), argument.all.where},
                              literal_from(object, type));
}

std::vector<hlo::Op> ops_from(const Argument& argument) {
  std::vector<hlo::Op> ops;
  Ref items = items_from(argument, argument.object, "a sequence of ops");
  for (PyObject* item : span_of(items)) ops.push_back(op_from(argument, item));
  return ops;
}

std::vector<std::pair<int64_t, int64_t>> pairs_from(const Argument& argument) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  Ref items = items_from(argument, argument.object, "a sequence of pairs of int");
  for (PyObject* item : span_of(items)) {
    std::vector<int64_t> pair = integers_from(argument, item);
    if (pair.size() != 2) wrong_argument(argument, "a sequence of pairs of int");
    pairs.emplace_back(pair[0], pair[1]);
  }
  return pairs;
}

ElementType element_from(const Argument& argument) {
  const char* expected = "an element type, as 'f32', or a dtype";
  if (argument.object == nullptr) wrong_argument(argument, expected);
  // dtypes print as lamella.float32 or float32; NumPy's types have a __name__.
  Ref text;
  if (PyUnicode_Check(argument.object)) {
    text = Ref::borrow(argument.object);
  } else {
    text = Ref(required(PyType_Check(argument.object)
                            ? PyObject_GetAttrString(argument.object, "__name__")
                            : PyObject_Str(argument.object)));
  }
  std::string_view name = text_of(text.get(), argument.name);
  if (size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  auto found = hlo::element_from_name(name);
  if (!found.has_value()) found = hlo::element_from_numpy_name(name);
  if (!found.has_value() || !hlo::is_array_type(*found)) {
    throw lamella::ValueError(str(argument.all.function, ": expected '", argument.name, "' to be ",
                                  expected, ", got '", name, "'"));
  }
  return *found;
}

Ref field_of(PyObject* object, const char* name) {
  if (PyDict_Check(object)) {
    PyObject* found = PyDict_GetItemString(object, name);
    return Ref::borrow(found);
  }
  Ref found(PyObject_GetAttrString(object, name));
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError();
    PyErr_Clear();
  }
  return found;
}

int choice_from(const Argument& argument, std::span<const char* const> texts, int first) {
  PyObject* object = argument.object;
  std::string expected = "one of ";
  for (size_t i = 0; i < texts.size(); ++i) expected += str(i == 0 ? "'" : ", '", texts[i], "'");
  if (object == nullptr) wrong_argument(argument, expected.c_str());
  if (PyUnicode_Check(object)) {
    std::string text(text_of(object, argument.name));
    for (size_t i = 0; i < texts.size(); ++i) {
      if (strcasecmp(texts[i], text.c_str()) == 0) return first + static_cast<int>(i);
    }
    throw lamella::ValueError(str(argument.all.function, ": expected '", argument.name, "' to be ",
                                  expected, ", got '", text, "'"));
  }
  if (!PyLong_Check(object)) wrong_argument(argument, expected.c_str());
  int64_t number = integer_from(argument, object);
  LAMELLA_CHECK_VALUE(number >= first && number < first + static_cast<int64_t>(texts.size()),
                      argument.all.function, ": expected '", argument.name, "' to be from ", first,
                      " to ", first + static_cast<int64_t>(texts.size()) - 1, ", got ", number);
  return static_cast<int>(number);
}

// ---- Conversions, by C++ type ------------------------------------------------------------------

#define LAMELLA_HLO_READ(type) typename From<type>::Stored From<type>::read(const Argument& a)
#define LAMELLA_HLO_PASS(type) type From<type>::pass(Stored& value, Arguments& all)
// Types that are passed as they are stored.
#define LAMELLA_HLO_PLAIN(type) \
  LAMELLA_HLO_PASS(type) { return value; }

LAMELLA_HLO_READ(hlo::Within) { return {}; }
LAMELLA_HLO_PASS(hlo::Within) { return {all.builder.get(), all.where}; }
LAMELLA_HLO_READ(hlo::Operand) { return op_from(a, a.object); }
LAMELLA_HLO_PASS(hlo::Operand) { return {value, all.where}; }
LAMELLA_HLO_READ(hlo::Op) { return op_from(a, a.object); }
LAMELLA_HLO_PLAIN(hlo::Op)
LAMELLA_HLO_READ(hlo::Operands) { return ops_from(needed(a)); }
LAMELLA_HLO_PASS(hlo::Operands) { return {value, all.where}; }
LAMELLA_HLO_READ(hlo::Span<hlo::Op>) {
  return a.object == nullptr ? std::vector<hlo::Op>() : ops_from(a);
}
LAMELLA_HLO_PASS(hlo::Span<hlo::Op>) { return std::span<const hlo::Op>(value); }
LAMELLA_HLO_READ(hlo::Span<int64_t>) {
  return a.object == nullptr ? std::vector<int64_t>() : integers_from(a, a.object);
}
LAMELLA_HLO_PASS(hlo::Span<int64_t>) { return std::span<const int64_t>(value); }
LAMELLA_HLO_READ(hlo::Span<Pair>) { return pairs_from(needed(a)); }
LAMELLA_HLO_PASS(hlo::Span<Pair>) { return std::span<const Pair>(value); }
LAMELLA_HLO_READ(int64_t) { return a.object == nullptr ? 0 : integer_from(a, a.object); }
LAMELLA_HLO_PLAIN(int64_t)
LAMELLA_HLO_READ(int) { return static_cast<int>(integer_from(a, a.object)); }
LAMELLA_HLO_PLAIN(int)
LAMELLA_HLO_READ(bool) { return a.object != nullptr && flag_from(a, a.object); }
LAMELLA_HLO_PLAIN(bool)
LAMELLA_HLO_READ(float) {
  double number = PyFloat_AsDouble(needed(a).object);
  if (number == -1 && PyErr_Occurred() != nullptr) wrong_argument(a, "a number");
  return static_cast<float>(number);
}
LAMELLA_HLO_PLAIN(float)
LAMELLA_HLO_READ(const std::string&) {
  if (a.object == nullptr) return std::string();
  if (PyBytes_Check(a.object)) {
    return {PyBytes_AS_STRING(a.object), static_cast<size_t>(PyBytes_GET_SIZE(a.object))};
  }
  if (!PyUnicode_Check(a.object)) wrong_argument(a, "a str");
  return std::string(text_of(a.object, a.name));
}
LAMELLA_HLO_PLAIN(const std::string&)
LAMELLA_HLO_READ(OptionalText) {
  return is_absent(a) ? std::string() : std::string(text_of(a.object, a.name));
}
LAMELLA_HLO_PASS(OptionalText) {
  return value.empty() ? OptionalText() : OptionalText(std::string_view(value));
}
LAMELLA_HLO_READ(OptionalInteger) {
  return is_absent(a) ? OptionalInteger() : OptionalInteger(integer_from(a, a.object));
}
LAMELLA_HLO_PLAIN(OptionalInteger)
LAMELLA_HLO_READ(OptionalFlag) {
  return is_absent(a) ? OptionalFlag() : OptionalFlag(flag_from(a, a.object));
}
LAMELLA_HLO_PLAIN(OptionalFlag)
LAMELLA_HLO_READ(OptionalFlags) {
  return is_absent(a) ? OptionalFlags() : OptionalFlags(flags_from(a));
}
LAMELLA_HLO_PLAIN(OptionalFlags)
LAMELLA_HLO_READ(const std::vector<bool>&) { return flags_from(needed(a)); }
LAMELLA_HLO_PLAIN(const std::vector<bool>&)
LAMELLA_HLO_READ(hlo::PrimitiveType) { return element_from(a); }
LAMELLA_HLO_PLAIN(hlo::PrimitiveType)
LAMELLA_HLO_READ(OptionalElement) {
  return is_absent(a) ? OptionalElement() : OptionalElement(element_from(a));
}
LAMELLA_HLO_PLAIN(OptionalElement)
LAMELLA_HLO_READ(const hlo::Shape&) { return shape_from(needed(a).object, a.all.function); }
LAMELLA_HLO_PLAIN(const hlo::Shape&)
LAMELLA_HLO_READ(hlo::Span<hlo::Shape>) {
  std::vector<hlo::Shape> shapes;
  Ref items = items_from(a, a.object, "a sequence of shapes");
  for (PyObject* item : span_of(items)) shapes.push_back(shape_from(item, a.all.function));
  return shapes;
}
LAMELLA_HLO_PASS(hlo::Span<hlo::Shape>) { return std::span<const hlo::Shape>(value); }
LAMELLA_HLO_READ(const hlo::BuiltComputation&) {
  if (a.object == nullptr || !PyObject_TypeCheck(a.object, module_type)) {
    wrong_argument(a, "a Module");
  }
  return hlo::BuiltComputation(module_from(a.object, a.all.function));
}
LAMELLA_HLO_PLAIN(const hlo::BuiltComputation&)
LAMELLA_HLO_READ(hlo::Span<const hlo::BuiltComputation*>) {
  Branches branches;
  Ref items = items_from(a, a.object, "a sequence of modules");
  for (PyObject* item : span_of(items)) {
    branches.computations.emplace_back(module_from(item, a.all.function));
  }
  return branches;
}
LAMELLA_HLO_PASS(hlo::Span<const hlo::BuiltComputation*>) {
  value.pointers.clear();
  for (const auto& one : value.computations) value.pointers.push_back(&one);
  return std::span<const hlo::BuiltComputation* const>(value.pointers);
}
LAMELLA_HLO_READ(const hlo::Literal*) {
  return is_absent(a) ? OptionalLiteral()
                      : OptionalLiteral(literal_from(a.object, ElementType::Invalid));
}
LAMELLA_HLO_PASS(const hlo::Literal*) { return value.has_value() ? &*value : nullptr; }
LAMELLA_HLO_READ(const hlo::PaddingConfig&) {
  const char* expected = "a sequence of (low, high, interior)";
  hlo::PaddingConfig config;
  Ref items = items_from(a, a.object, expected);
  for (PyObject* item : span_of(items)) {
    std::vector<int64_t> three = integers_from(a, item);
    if (three.size() != 2 && three.size() != 3) wrong_argument(a, expected);
    auto* dimension = config.add_dimensions();
    dimension->set_edge_padding_low(three[0]);
    dimension->set_edge_padding_high(three[1]);
    dimension->set_interior_padding(three.size() == 3 ? three[2] : 0);
  }
  return config;
}
LAMELLA_HLO_PLAIN(const hlo::PaddingConfig&)
LAMELLA_HLO_READ(const hlo::PrecisionConfig*) {
  static constexpr const char* kTexts[] = {"DEFAULT", "HIGH", "HIGHEST", "PACKED_NIBBLE"};
  if (is_absent(a)) return std::nullopt;
  hlo::PrecisionConfig config;
  Ref items = items_from(a, a.object, "a sequence of two precisions");
  for (PyObject* item : span_of(items)) {
    config.add_operand_precision(static_cast<hlo::PrecisionConfig::Precision>(
        choice_from({item, a.name, a.all}, kTexts, 0)));
  }
  return config;
}
LAMELLA_HLO_PASS(const hlo::PrecisionConfig*) { return value.has_value() ? &*value : nullptr; }

namespace {

// Read fields of dimension numbers: lists, and numbers.
void take(const Argument& a, const char* name, std::vector<int64_t>* list) {
  Ref field = field_of(a.object, name);
  if (field && field.get() != Py_None) *list = integers_from({a.object, name, a.all}, field.get());
}
int64_t number(const Argument& a, const char* name, int64_t otherwise) {
  Ref field = field_of(a.object, name);
  return field && field.get() != Py_None ? integer_from({a.object, name, a.all}, field.get())
                                         : otherwise;
}
// Checks the names of fields: a misspelt one would otherwise count as left out.
void allow(const Argument& a, std::initializer_list<const char*> names) {
  if (a.object == nullptr) wrong_argument(a, "");
  if (!PyDict_Check(a.object)) return;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(a.object, &at, &key, &value) != 0) {
    bool known = false;
    std::string_view text = text_of(key, a.name);
    for (const char* name : names) known |= text == name;
    LAMELLA_CHECK_VALUE(known, a.all.function, ": expected '", a.name,
                        "' to have dimension numbers of the function, got '", text, "'");
  }
}

}  // namespace

LAMELLA_HLO_READ(const hlo::DotDimensionNumbers&) {
  allow(a, {"lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batch_dimensions",
            "rhs_batch_dimensions"});
  hlo::DotDimensionNumbers d;
  take(a, "lhs_contracting_dimensions", d.mutable_lhs_contracting_dimensions());
  take(a, "rhs_contracting_dimensions", d.mutable_rhs_contracting_dimensions());
  take(a, "lhs_batch_dimensions", d.mutable_lhs_batch_dimensions());
  take(a, "rhs_batch_dimensions", d.mutable_rhs_batch_dimensions());
  return d;
}
LAMELLA_HLO_PLAIN(const hlo::DotDimensionNumbers&)
LAMELLA_HLO_READ(const hlo::GatherDimensionNumbers&) {
  allow(a, {"offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
            "start_indices_batching_dims", "index_vector_dim"});
  hlo::GatherDimensionNumbers d;
  take(a, "offset_dims", d.mutable_offset_dims());
  take(a, "collapsed_slice_dims", d.mutable_collapsed_slice_dims());
  take(a, "start_index_map", d.mutable_start_index_map());
  take(a, "operand_batching_dims", d.mutable_operand_batching_dims());
  take(a, "start_indices_batching_dims", d.mutable_start_indices_batching_dims());
  d.set_index_vector_dim(number(a, "index_vector_dim", 0));
  return d;
}
LAMELLA_HLO_PLAIN(const hlo::GatherDimensionNumbers&)
LAMELLA_HLO_READ(const hlo::ScatterDimensionNumbers&) {
  allow(a, {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
            "input_batching_dims", "scatter_indices_batching_dims", "index_vector_dim"});
  hlo::ScatterDimensionNumbers d;
  take(a, "update_window_dims", d.mutable_update_window_dims());
  take(a, "inserted_window_dims", d.mutable_inserted_window_dims());
  take(a, "scatter_dims_to_operand_dims", d.mutable_scatter_dims_to_operand_dims());
  take(a, "input_batching_dims", d.mutable_input_batching_dims());
  take(a, "scatter_indices_batching_dims", d.mutable_scatter_indices_batching_dims());
  d.set_index_vector_dim(number(a, "index_vector_dim", 0));
  return d;
}
LAMELLA_HLO_PLAIN(const hlo::ScatterDimensionNumbers&)
LAMELLA_HLO_READ(const hlo::ConvolutionDimensionNumbers&) {
  allow(a, {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
            "kernel_input_feature_dimension", "kernel_output_feature_dimension",
            "kernel_spatial_dimensions", "output_batch_dimension", "output_feature_dimension",
            "output_spatial_dimensions"});
  hlo::ConvolutionDimensionNumbers d;
  d.set_input_batch_dimension(number(a, "input_batch_dimension", 0));
  d.set_input_feature_dimension(number(a, "input_feature_dimension", 1));
  take(a, "input_spatial_dimensions", d.mutable_input_spatial_dimensions());
  d.set_kernel_output_feature_dimension(number(a, "kernel_output_feature_dimension", 0));
  d.set_kernel_input_feature_dimension(number(a, "kernel_input_feature_dimension", 1));
  take(a, "kernel_spatial_dimensions", d.mutable_kernel_spatial_dimensions());
  d.set_output_batch_dimension(number(a, "output_batch_dimension", 0));
  d.set_output_feature_dimension(number(a, "output_feature_dimension", 1));
  take(a, "output_spatial_dimensions", d.mutable_output_spatial_dimensions());
  return d;
}
LAMELLA_HLO_PLAIN(const hlo::ConvolutionDimensionNumbers&)

LAMELLA_HLO_READ(hlo::Span<hlo::OutputOperandAliasing>) {
  const char* expected = "a sequence of (output index, (operand, operand index))";
  std::vector<hlo::OutputOperandAliasing> aliases;
  if (a.object == nullptr) return aliases;
  Ref items = items_from(a, a.object, expected);
  for (PyObject* item : span_of(items)) {
    Ref two = items_from(a, item, expected);
    if (span_of(two).size() != 2) wrong_argument(a, expected);
    Ref operand = items_from(a, span_of(two)[1], expected);
    if (span_of(operand).size() != 2) wrong_argument(a, expected);
    aliases.push_back(
        {integers_from(a, span_of(two)[0]),
         {integer_from(a, span_of(operand)[0]), integers_from(a, span_of(operand)[1])}});
  }
  return aliases;
}
LAMELLA_HLO_PASS(hlo::Span<hlo::OutputOperandAliasing>) {
  return std::span<const hlo::OutputOperandAliasing>(value);
}
LAMELLA_HLO_READ(hlo::Span<hlo::ReplicaGroup>) {
  std::vector<hlo::ReplicaGroup> groups;
  if (a.object == nullptr) return groups;
  Ref items = items_from(a, a.object, "a sequence of groups of int");
  for (PyObject* item : span_of(items)) {
    *groups.emplace_back().mutable_replica_ids() = integers_from(a, item);
  }
  return groups;
}
LAMELLA_HLO_PASS(hlo::Span<hlo::ReplicaGroup>) { return std::span<const hlo::ReplicaGroup>(value); }

// Enumerations by the names of their values. `first` is the number of the first value.
#define LAMELLA_HLO_CHOICE(type, first, otherwise, ...)                               \
  LAMELLA_HLO_READ(type) {                                                            \
    static constexpr const char* kTexts[] = {__VA_ARGS__};                            \
    if (a.object == nullptr && (otherwise) >= 0) return static_cast<type>(otherwise); \
    return static_cast<type>(choice_from(a, kTexts, first));                          \
  }                                                                                   \
  LAMELLA_HLO_PLAIN(type)
LAMELLA_HLO_CHOICE(hlo::ComparisonDirection, 0, -1, "EQ", "NE", "GE", "GT", "LE", "LT")
LAMELLA_HLO_CHOICE(hlo::Comparison::Type, 0, -1, "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
LAMELLA_HLO_CHOICE(hlo::Padding, 0, -1, "SAME", "VALID")
LAMELLA_HLO_CHOICE(hlo::FftType, 0, -1, "FFT", "IFFT", "RFFT", "IRFFT")
LAMELLA_HLO_CHOICE(hlo::RandomAlgorithm, 0, -1, "RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX")
LAMELLA_HLO_CHOICE(hlo::TriangularSolveOptions::Transpose, 1, 1, "NO_TRANSPOSE", "TRANSPOSE",
                   "ADJOINT")
LAMELLA_HLO_CHOICE(hlo::CustomCallSchedule, 0, 0, "SCHEDULE_NONE", "SCHEDULE_LATEST",
                   "SCHEDULE_EARLIEST")
LAMELLA_HLO_CHOICE(hlo::CustomCallApiVersion, 1, 1, "API_VERSION_ORIGINAL",
                   "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                   "API_VERSION_TYPED_FFI")

}  // namespace lamella::python
