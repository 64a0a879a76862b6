// Calls: from parsed arguments through the dispatcher to Python values.
#pragma once
#include "python/src/parse.h"

namespace lamella::python {

// Runs an operator on values and wraps its returns; releases the GIL if there is enough work.
PyObject* invoke(const Program& program, const lamella_value* values, Frame& frame);

// Parses and calls. kwnames as in vectorcall, may be NULL. Without a name, a call that fits no
// signature returns NotImplemented.
PyObject* call_table(const ProgramTable& table, const char* name, bool is_method,
                     PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// The same with a given key set.
PyObject* invoke_with(const Program& program, const lamella_value* values, Frame& frame,
                      uint64_t keys);
// The owned returns of a call as a Python object.
PyObject* wrap_returns(const Program& program, lamella_value* returns);

// A value as a Python object. `owned`: the value's reference is taken over, also on failure.
PyObject* to_python(const lamella_value& value, SchemaType type, bool owned);

// An operator that the extension itself calls by name; looked up until it is found.
struct KnownOperator {
  const char* name;
  const char* overload;
  std::atomic<const lamella_operator*> found{nullptr};
  // Sets a Python error and returns NULL if there is none.
  const lamella_operator* get() {
    const lamella_operator* op = found.load(std::memory_order_acquire);
    return op != nullptr ? op : find();
  }
  const lamella_operator* find();
};
// Calls an operator whose one return is a tensor; an undefined one and an error set on failure.
TensorBase call_known(KnownOperator& op, const lamella_value* values, size_t count);
inline TensorBase call_known(KnownOperator& op, std::initializer_list<lamella_value> values) {
  return call_known(op, values.begin(), values.size());
}

// Sets the error of a call that failed, or returned no tensor; returns NULL.
lamella_tensor* raise_without_tensor(const lamella_operator* op, lamella_status status);

inline lamella_value tensor_value(lamella_tensor* tensor) {
  lamella_value v{{0}, 0, LAMELLA_TENSOR, 0, 0};
  v.as.tensor = tensor;
  return v;
}
inline lamella_value int_value(int64_t number) {
  lamella_value v{{0}, 0, LAMELLA_INT, 0, 0};
  v.as.i = number;
  return v;
}
inline lamella_value bool_value(bool flag) {
  lamella_value v{{0}, 0, LAMELLA_BOOL, 0, 0};
  v.as.i = flag;
  return v;
}
inline lamella_value double_value(double number) {
  lamella_value v{{0}, 0, LAMELLA_DOUBLE, 0, 0};
  v.as.d = number;
  return v;
}
inline lamella_value none_value() { return {{0}, 0, LAMELLA_NONE, 0, 0}; }
inline lamella_value list_value(uint8_t tag, const void* data, size_t size) {
  lamella_value v{{0}, static_cast<uint32_t>(size), tag, 0, 0};
  v.as.pointer = const_cast<void*>(data);
  return v;
}

}  // namespace lamella::python
