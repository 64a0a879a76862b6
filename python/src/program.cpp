// Compiles schemas into programs, and orders the overloads of a name.
#include "python/src/program.h"

#include <structmember.h>  // PyMemberDef

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "lamella/dispatch/registry.h"
#include "lamella/schema/parser.h"
#include "python/src/errors.h"
#include "python/src/op_facts.h"

namespace lamella::python {
namespace {

// Signatures that exist only in Python: arguments are passed to the target's arguments by name.
struct PythonSignature {
  const char* name;
  const char* signature;
  const char* target;
  const char* overload;
};
constexpr PythonSignature kPythonSignatures[] = {
    {"aten::to",
     "to(Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool "
     "copy=False, *, MemoryFormat? memory_format=None) -> Tensor",
     "aten::to", "dtype_layout"},
};

struct Fill {
  lamella_value* value;
  void allocate(uint8_t tag, const void* data, size_t size, size_t element) {
    detail::check(lamella_value_allocate(tag, size, value));
    if (size != 0) __builtin_memcpy(value->as.pointer, data, size * element);
  }
  void operator()(std::monostate) {}
  void operator()(bool flag) {
    value->tag = LAMELLA_BOOL;
    value->as.i = flag;
  }
  void operator()(int64_t number) {
    value->tag = LAMELLA_INT;
    value->as.i = number;
  }
  void operator()(double number) {
    value->tag = LAMELLA_DOUBLE;
    value->as.d = number;
  }
  void operator()(const std::complex<double>& number) {
    double parts[2] = {number.real(), number.imag()};
    allocate(LAMELLA_COMPLEX, parts, 2, sizeof(double));
  }
  void operator()(const std::string& text) {
    allocate(LAMELLA_STRING, text.data(), text.size(), 1);
  }
  void operator()(const std::vector<bool>& list) {
    std::string bytes;
    for (bool flag : list) bytes.push_back(flag ? 1 : 0);
    allocate(LAMELLA_BOOL_LIST, bytes.data(), bytes.size(), 1);
  }
  void operator()(const std::vector<int64_t>& list) {
    allocate(LAMELLA_INT_LIST, list.data(), list.size(), sizeof(int64_t));
  }
  void operator()(const std::vector<double>& list) {
    allocate(LAMELLA_DOUBLE_LIST, list.data(), list.size(), sizeof(double));
  }
  void operator()(const std::vector<std::string>& list) {
    detail::check(lamella_value_allocate(LAMELLA_LIST, list.size(), value));
    for (size_t i = 0; i < list.size(); ++i) {
      Fill{static_cast<lamella_value*>(value->as.pointer) + i}(list[i]);
    }
  }
};

// The value of a default. An empty list is `[]` for any list type, an undefined tensor for Tensor.
lamella_value default_value(const Argument& argument, Kind kind) {
  lamella_value value{{0}, 0, LAMELLA_NONE, 0, 0};
  if (!argument.default_value.has_value()) return value;
  std::visit(Fill{&value}, argument.default_value->value);
  if (kind == Kind::kDevice && value.tag == LAMELLA_STRING) {
    Device device(std::string_view(static_cast<const char*>(value.as.pointer), value.size));
    lamella_value_release(&value);
    value = lamella_value{{0}, 0, LAMELLA_DEVICE, 0, 0};
    value.as.i = IValue::pack_device(device);
  }
  return value;
}

// A new reference for a default that all calls can share, else NULL.
PyObject* default_object(const lamella_value& value, const Argument& argument) {
  switch (value.tag) {
    case LAMELLA_NONE:
    case LAMELLA_INT:
    case LAMELLA_DOUBLE:
    case LAMELLA_BOOL:
    case LAMELLA_STRING: {
      PyObject* object = to_python(value, argument.type, false);
      if (object == nullptr) PyErr_Clear();
      return object;
    }
    default:
      return nullptr;
  }
}

std::string python_type(SchemaType type) {
  std::string text = type.str();
  for (size_t at; (at = text.find("SymInt")) != std::string::npos;) text.replace(at, 6, "int");
  return text;
}

// Tensor overloads are tried before those that take a Scalar instead, as a 0-dimensional tensor
// fits both.
bool goes_before(const Program& a, const Program& b) {
  size_t shared = std::min<size_t>(a.positional, b.positional);
  bool before = false;
  for (size_t i = 0; i < shared; ++i) {
    Kind x = a.params[i].kind, y = b.params[i].kind;
    if (x == Kind::kTensor && y == Kind::kScalar) before = true;
    if (x == Kind::kScalar && y == Kind::kTensor) return false;
  }
  return before;
}

// A number is accepted for a tensor where PyTorch does so, in arithmetic, copies and where(), and
// in operators of other libraries. `name` includes the namespace.
bool takes_numbers(std::string_view name) {
  if (!name.starts_with("aten::")) return true;
  name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  for (std::string_view known : {"add", "sub", "subtract", "mul", "multiply", "div", "divide",
                                 "true_divide", "floor_divide", "floordiv", "copy", "where"}) {
    if (name == known) return true;
  }
  return false;
}

// zeros(), zeros_like(), new_zeros(): operators with all options of a tensor that do not convert
// another tensor.
bool is_factory(const FunctionSchema& schema) {
  for (const char* option : {"dtype", "layout", "device", "pin_memory"}) {
    if (schema.find_argument(option) == nullptr) return false;
  }
  const std::string& name = schema.name.name;
  if (name.starts_with("new_") || name.ends_with("_like")) return true;
  for (const Argument& argument : schema.arguments) {
    if (argument.type.without_optional().is_tensor()) return false;
  }
  return true;
}

void render(Program* program, const FunctionSchema& signature) {
  std::string& out = program->text;
  out = signature.name.name + "(";
  bool star = false, first = true;
  for (const Param& param : program->params) {
    if (param.is_out) continue;
    if (!first) out += ", ";
    first = false;
    if (param.keyword_only && !star) {
      out += "*, ";
      star = true;
    }
    out += python_type(param.type);
    out += ' ';
    out += param.index == 0 && signature.arguments[0].name == "self" ? "input"
                                                                     : PyUnicode_AsUTF8(param.name);
    if (!param.has_default) continue;
    const Argument* argument = signature.find_argument(PyUnicode_AsUTF8(param.name));
    out += '=' + argument->default_value->str();
  }
  if (program->factory) out += ", bool requires_grad=False";
  if (!program->outs.empty()) {
    if (!first) out += ", ";
    if (!star) out += "*, ";
    out += program->outs.size() == 1 ? "Tensor out" : "Tensor[] out";
  }
  out += ')';
}

// `signature`: the operator's own schema, or a Python-only one for it.
std::unique_ptr<Program> compile(const lamella_operator* op, const FunctionSchema& schema,
                                 const FunctionSchema& signature) {
  auto program = std::make_unique<Program>();
  program->op = op;
  program->argument_count = static_cast<uint16_t>(schema.arguments.size());
  program->positional = 0;
  program->needed = 0;
  program->varargs = -1;
  program->required = 0;
  program->schema = schema.str();
  LAMELLA_CHECK(signature.arguments.size() <= 64, schema.name.str(),
                ": expected at most 64 arguments to call it from Python");
  program->defaults.reserve(schema.arguments.size() + 1);  // data() must not be null: calls copy it
  for (const Argument& argument : schema.arguments) {
    bool optional = false;
    program->defaults.push_back(default_value(argument, kind_of(argument.type, &optional)));
  }
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    const Argument& argument = signature.arguments[i];
    Param param{};
    param.name = PyUnicode_InternFromString(argument.name.c_str());
    if (param.name == nullptr) throw std::bad_alloc();
    param.index = static_cast<uint16_t>(schema.argument_index(argument.name));
    param.kind = kind_of(argument.type, &param.optional);
    param.keyword_only = argument.kwarg_only;
    param.has_default = argument.default_value.has_value();
    param.is_out = argument.is_out();
    param.fixed_size =
        static_cast<int16_t>(argument.type.without_optional().fixed_size().value_or(0));
    param.type = argument.type;
    if (param.has_default)
      param.default_object = default_object(program->defaults[param.index], argument);
    if (param.kind == Kind::kIntList && program->sizes < 0) {
      program->sizes = static_cast<int16_t>(param.index);
    }
    if (param.is_out) program->outs.push_back(static_cast<uint16_t>(i));
    if (!param.keyword_only) ++program->positional;
    if (!param.has_default) {
      program->required |= uint64_t{1} << i;
      if (!param.keyword_only) program->needed = static_cast<uint16_t>(i + 1);
    }
    if (param.kind == Kind::kNever && !param.has_default) program->supported = false;
    program->params.push_back(param);
  }
  // x.view(2, 3), zeros(2, 3): the only positional argument besides a method's self is a list.
  bool has_self = !signature.arguments.empty() && signature.arguments[0].name == "self" &&
                  program->params[0].kind == Kind::kTensor;
  int first = has_self ? 1 : 0;
  if (program->positional == first + 1 && program->params[first].kind == Kind::kIntList) {
    program->varargs = static_cast<int16_t>(first);
  }
  bool named = !schema.returns.empty();
  for (const Argument& result : schema.returns) {
    bool optional = false;
    program->return_kinds.push_back(kind_of(result.type, &optional));
    program->return_types.push_back(result.type);
    program->return_names.push_back(result.name);
    named = named && !result.name.empty();
  }
  if (!named || schema.returns.size() < 2) program->return_names.clear();
  program->factory = is_factory(schema);
  if (std::ranges::count(entry_of(op)->tags, "waits") != 0) program->least_work = kWorkToReleaseGil;
  render(program.get(), signature);
  return program;
}

// NULL for built-in operators, whose kernels calls need not look at.
OpFacts* foreign_facts(const lamella_operator* op) {
  if (strncmp(op->name, "aten::", 6) == 0) return nullptr;
  OpFacts* facts = facts_of(op);
  if (facts == nullptr) PyErr_Clear();
  return facts;
}

std::mutex programs_mutex;
// One for each signature that an operator ever had; none is freed, since calls may be using it.
std::map<std::pair<const lamella_operator*, std::string>, std::unique_ptr<const Program>> programs;
// The same for the tables of names.
std::map<std::tuple<std::vector<const Program*>, OpFacts*, bool>,
         std::unique_ptr<const ProgramTable>>
    tables;

const Program* program_of(const lamella_operator* op, const FunctionSchema& schema,
                          const FunctionSchema& signature) {
  std::pair key(op, schema.str() + "\n" + signature.str());
  {
    std::lock_guard lock(programs_mutex);
    auto known = programs.find(key);
    if (known != programs.end()) return known->second.get();
  }
  // Made without the lock, as Python code may run meanwhile.
  std::unique_ptr<Program> made = compile(op, schema, signature);
  std::lock_guard lock(programs_mutex);
  return programs.try_emplace(std::move(key), std::move(made)).first->second.get();
}

const ProgramTable* known_table(std::vector<const Program*> choice, OpFacts* facts, bool numbers) {
  std::lock_guard lock(programs_mutex);
  auto& place = tables[{choice, facts, numbers}];
  if (place == nullptr) place.reset(new ProgramTable{numbers, std::move(choice), facts});
  return place.get();
}

}  // namespace

uint64_t operators_generation() { return Registry::generation(); }

Kind kind_of(SchemaType type, bool* optional) {
  *optional = type.is_optional();
  type = type.without_optional();
  switch (type.kind()) {
    case TypeKind::kTensor:
      return Kind::kTensor;
    case TypeKind::kInt:
      return Kind::kInt;
    case TypeKind::kFloat:
      return Kind::kFloat;
    case TypeKind::kBool:
      return Kind::kBool;
    case TypeKind::kComplex:
      return Kind::kComplex;
    case TypeKind::kStr:
      return Kind::kString;
    case TypeKind::kScalar:
      return Kind::kScalar;
    case TypeKind::kGenerator:
      return Kind::kGenerator;
    case TypeKind::kScalarType:
      return Kind::kScalarType;
    case TypeKind::kLayout:
      return Kind::kLayout;
    case TypeKind::kDevice:
      return Kind::kDevice;
    case TypeKind::kMemoryFormat:
      return Kind::kMemoryFormat;
    case TypeKind::kDict:
      return Kind::kDict;
    case TypeKind::kTuple:
      return Kind::kTuple;
    case TypeKind::kAny:
    case TypeKind::kTypeVar:
      return Kind::kAny;
    case TypeKind::kCustomClass:
    case TypeKind::kAnyClass:
    case TypeKind::kStream:
      return Kind::kObject;
    case TypeKind::kList: {
      SchemaType element = type.element();
      if (element.is_optional()) {
        return element.element().is_tensor() ? Kind::kOptionalTensorList : Kind::kList;
      }
      switch (element.kind()) {
        case TypeKind::kTensor:
          return Kind::kTensorList;
        case TypeKind::kInt:
          return Kind::kIntList;
        case TypeKind::kFloat:
          return Kind::kFloatList;
        case TypeKind::kBool:
          return Kind::kBoolList;
        default:
          return Kind::kList;
      }
    }
    default:
      return Kind::kNever;
  }
}

const Program* program_of(const lamella_operator* op) {
  const FunctionSchema& schema = Registry::get().schema(entry_of(op));
  return program_of(op, schema, schema);
}

const ProgramTable* make_table(const std::string& name) {
  std::vector<const Program*> found;
  for (OperatorEntry* entry : Registry::get().overloads(name)) {
    const Program* program = program_of(entry);
    if (program->supported) found.push_back(program);
  }
  if (found.empty()) return nullptr;
  for (const PythonSignature& extra : kPythonSignatures) {
    if (name != extra.name) continue;
    OperatorEntry* target = Registry::get().lookup(extra.target, extra.overload);
    if (target == nullptr || !target->defined()) continue;
    found.push_back(
        program_of(target, Registry::get().schema(target), parse_schema(extra.signature)));
  }
  // A stable sort by a partial order.
  std::vector<const Program*> ordered;
  for (const Program* program : found) {
    size_t at = ordered.size();
    for (size_t i = 0; i < ordered.size(); ++i) {
      if (goes_before(*program, *ordered[i])) {
        at = i;
        break;
      }
    }
    ordered.insert(ordered.begin() + static_cast<std::ptrdiff_t>(at), program);
  }
  OpFacts* facts = ordered.size() == 1 ? foreign_facts(ordered[0]->op) : nullptr;
  return known_table(std::move(ordered), facts, takes_numbers(name));
}

const ProgramTable* make_table(const lamella_operator* op) {
  return known_table({program_of(op)}, foreign_facts(op), takes_numbers(op->name));
}

namespace {

// One line for each result, since tensors have several lines.
PyObject* text_of_results(PyObject* self) {
  const char* name = std::strrchr(Py_TYPE(self)->tp_name, '.') + 1;
  std::string fields;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    Ref text(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (chars == nullptr) return nullptr;
    fields += std::string(i == 0 ? "" : ",\n") + Py_TYPE(self)->tp_members[i].name + "=" + chars;
  }
  return PyUnicode_FromFormat("%s.return_types.%s(\n%s)", package_name(), name, fields.c_str());
}

}  // namespace

PyTypeObject* return_type_of(const Program& program) {
  PyTypeObject* type = program.return_type.load(std::memory_order_acquire);
  if (type == nullptr) {
    std::string name = std::string(program.op->name);
    name = "lamella.return_types." + name.substr(name.find("::") + 2);
    // The type points to the texts and is never freed.
    auto* texts = new std::deque<std::string>{std::move(name)};
    std::vector<PyStructSequence_Field> fields;
    for (const std::string& field : program.return_names) {
      texts->push_back(field);
      fields.push_back({texts->back().c_str(), nullptr});
    }
    PyStructSequence_Desc description{};
    description.name = texts->front().c_str();
    description.n_in_sequence = static_cast<int>(fields.size());
    fields.push_back({nullptr, nullptr});
    description.fields = fields.data();
    PyTypeObject* made = PyStructSequence_NewType(&description);
    if (made == nullptr) return nullptr;
    made->tp_repr = text_of_results;
    auto& place = const_cast<Program&>(program).return_type;
    if (place.compare_exchange_strong(type, made)) {
      type = made;
    } else {
      Py_DECREF(made);  // another thread was faster
    }
  }
  Py_INCREF(type);
  return type;
}

}  // namespace lamella::python
