// Creates and looks up the OpFacts of operators, and converts arguments and results for Python
// functions.
#include "python/src/op_facts.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "lamella/dispatch/registry.h"
#include "python/src/errors.h"
#include "python/src/tensor.h"

namespace lamella::python {
namespace {

// A table that only grows: it is read without a lock, since operators are never removed from it.
constexpr size_t kBuckets = 1 << 12;
struct Bucketed {
  OpFacts facts;
  Bucketed* next;
};
std::atomic<Bucketed*> buckets[kBuckets];
std::mutex growing;

std::atomic<Bucketed*>& bucket_of(const lamella_operator* op) {
  auto address = reinterpret_cast<uintptr_t>(op);
  return buckets[((address >> 6) ^ (address >> 18)) % kBuckets];
}

void read_schema(OpFacts* facts) {
  uint64_t generation = operators_generation();
  const Program* program = program_of(facts->op);
  if (program != facts->program.load(std::memory_order_relaxed)) {
    facts->shared = &Registry::get().facts(entry_of(facts->op));
    facts->writes = 0;
    facts->simple = true;
    facts->direct = program->params.size() == program->positional;
    for (const auto& result : facts->shared->returns) facts->direct &= result.written < 0;
    for (uint16_t i : facts->shared->written) facts->writes |= uint64_t{1} << i;
    for (const Param& param : program->params) {
      facts->simple = facts->simple && param.kind != Kind::kTensorList &&
                      param.kind != Kind::kOptionalTensorList;
    }
    for (Kind kind : program->return_kinds) {
      facts->simple = facts->simple && kind != Kind::kTensorList;
    }
    facts->makes_views = !facts->shared->viewed.empty();
    facts->program.store(program, std::memory_order_release);
  }
  facts->judged.store(nullptr, std::memory_order_relaxed);
  facts->generation.store(generation, std::memory_order_release);
}

bool same_span(const lamella_value& a, const lamella_value& b, size_t element) {
  return a.size == b.size &&
         (a.size == 0 || memcmp(a.as.pointer, b.as.pointer, a.size * element) == 0);
}
bool is_default(const Program& program, const Param& param, const lamella_value& value) {
  if (!param.has_default) return false;
  const lamella_value& usual = program.defaults[param.index];
  if (value.tag != usual.tag) return false;
  switch (value.tag) {
    case LAMELLA_NONE:
      return true;
    case LAMELLA_INT:
    case LAMELLA_BOOL:
    case LAMELLA_DEVICE:
      return value.as.i == usual.as.i;
    case LAMELLA_DOUBLE:
      return value.as.d == usual.as.d;
    case LAMELLA_STRING:
    case LAMELLA_BOOL_LIST:
      return same_span(value, usual, 1);
    case LAMELLA_INT_LIST:
    case LAMELLA_DOUBLE_LIST:
      return same_span(value, usual, 8);
    default:
      return false;
  }
}

// A number that was converted to a tensor is passed as the number.
PyObject* argument_object(const lamella_value& value, SchemaType type) {
  if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr &&
      (value.as.tensor->flags & LAMELLA_TENSOR_WRAPPED_NUMBER) != 0 &&
      value.as.tensor->data != nullptr) {
    return tensor_item(value.as.tensor);
  }
  return to_python(value, type, false);
}

}  // namespace

bool OpFacts::is_composite(uint64_t keys) {
  const lamella_kernel* kernel = abi::kernel_of(op, keys);
  if (kernel == judged.load(std::memory_order_acquire)) [[likely]]
    return composite.load(std::memory_order_relaxed);
  Slot slot =
      Registry::get().slot(entry_of(op), static_cast<DispatchKey>(lamella::detail::slot_of(keys)));
  // Modes see the copy of a view as one operator.
  bool is = slot.entry != nullptr && slot.entry->key == DispatchKey::CompositeImplicitAutograd &&
            std::ranges::count(entry_of(op)->tags, "view_copy") == 0;
  composite.store(is, std::memory_order_relaxed);
  judged.store(kernel, std::memory_order_release);
  return is;
}

OpFacts* bare_facts_of(const lamella_operator* op) {
  std::atomic<Bucketed*>& head = bucket_of(op);
  for (Bucketed* at = head.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (at->facts.op == op) return &at->facts;
  }
  // Made without the lock, as Python code may run meanwhile.
  PyPacket* overload =
      make_packet(&OverloadType, op->name, strstr(op->name, "::") + 2, "lamella.ops");
  if (overload == nullptr) return nullptr;
  overload->op = op;
  std::lock_guard lock(growing);
  for (Bucketed* at = head.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (at->facts.op != op) continue;
    Py_DECREF(reinterpret_cast<PyObject*>(overload));
    return &at->facts;
  }
  auto* made = new Bucketed{};
  made->facts.op = op;
  made->facts.overload = reinterpret_cast<PyObject*>(overload);
  made->next = head.load(std::memory_order_relaxed);
  head.store(made, std::memory_order_release);
  return &made->facts;
}

OpFacts* facts_of(const lamella_operator* op) {
  OpFacts* facts = bare_facts_of(op);
  if (facts != nullptr &&
      facts->generation.load(std::memory_order_acquire) != operators_generation()) [[unlikely]] {
    read_schema(facts);
  }
  return facts;
}

bool pack_arguments(const Program& program, const lamella_value* arguments, Ref* args,
                    Ref* kwargs) {
  const auto& params = program.params;
  size_t positional = program.positional;
  while (positional > 0 &&
         is_default(program, params[positional - 1], arguments[params[positional - 1].index])) {
    --positional;
  }
  *args = Ref(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  *kwargs = Ref(PyDict_New());
  if (!*args || !*kwargs) return false;
  for (size_t i = 0; i < positional; ++i) {
    PyObject* value = argument_object(arguments[params[i].index], params[i].type);
    if (value == nullptr) return false;
    PyTuple_SET_ITEM(args->get(), static_cast<Py_ssize_t>(i), value);
  }
  for (size_t i = program.positional; i < params.size(); ++i) {
    const lamella_value& given = arguments[params[i].index];
    if (is_default(program, params[i], given)) continue;
    Ref value(argument_object(given, params[i].type));
    if (!value || PyDict_SetItem(kwargs->get(), params[i].name, value.get()) != 0) return false;
  }
  return true;
}

lamella_status store_returns(OpFacts& facts, const lamella_value* arguments, PyObject* result,
                             const char* function, lamella_value* returns) {
  const lamella_operator* op = facts.op;
  const Program& program = *facts.program.load(std::memory_order_acquire);
  uint32_t wanted = op->return_count;
  if (wanted == 0) return LAMELLA_OK;
  PyObject* single = result;
  PyObject** items = &single;
  Ref held;
  if (wanted > 1) {
    bool fits = (PyTuple_Check(result) || PyList_Check(result)) &&
                PySequence_Fast_GET_SIZE(result) == static_cast<Py_ssize_t>(wanted);
    if (!fits) {
      PyErr_Format(PyExc_RuntimeError, "%s: expected its %s to return a tuple of %u, got %R",
                   op->name, function, wanted, Py_TYPE(result));
      return keep_python_error();
    }
    // Copied, as the contents of a list may change while it is read.
    held = Ref(PySequence_Tuple(result));
    if (!held) return keep_python_error();
    items = PySequence_Fast_ITEMS(held.get());
  }
  Frame frame;
  for (uint32_t i = 0; i < wanted; ++i) {
    lamella_value borrowed = none_value();
    Match m = Match::kYes;
    if (const int written = facts.shared->returns[i].written; written >= 0) {
      // Whatever the function returned, the operator returns the argument that it writes.
      borrowed = arguments[written];
    } else if (items[i] == Py_None && program.return_kinds[i] == Kind::kTensor) {
      borrowed = tensor_value(nullptr);
    } else {
      m = convert_type(program.return_types[i], items[i], frame, &borrowed);
    }
    if (m == Match::kNo) {
      PyErr_Format(PyExc_RuntimeError, "%s: expected its %s to return %s, got %s", op->name,
                   function, program.return_types[i].str().c_str(), Py_TYPE(items[i])->tp_name);
    }
    lamella_status status = m == Match::kYes ? LAMELLA_OK : keep_python_error();
    if (status == LAMELLA_OK) status = lamella_value_copy(&borrowed, &returns[i]);
    if (status != LAMELLA_OK) {
      while (i-- > 0) lamella_value_release(&returns[i]);
      return status;
    }
  }
  return LAMELLA_OK;
}

}  // namespace lamella::python
