// Tensors as Python numbers: arithmetic, comparison, conversion.
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"
#include "python/src/torch_function.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

enum Slot {
  kAdd,
  kSub,
  kMul,
  kTrueDivide,
  kFloorDivide,
  kRemainder,
  kPow,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLShift,
  kRShift,
  kInplaceAdd,
  kInplaceSub,
  kInplaceMul,
  kInplaceTrueDivide,
  kInplaceFloorDivide,
  kInplaceRemainder,
  kInplacePow,
  kInplaceAnd,
  kInplaceOr,
  kInplaceXor,
  kInplaceLShift,
  kInplaceRShift,
  kNeg,
  kAbs,
  kInvert,
  kLt,
  kLe,
  kEq,
  kNe,
  kGt,
  kGe,
  kAny,
  kSlots
};
SlotOperator slots[kSlots] = {{"aten::add"},
                              {"aten::sub"},
                              {"aten::mul"},
                              {"aten::div"},
                              {"aten::floordiv", "floor_divide"},
                              {"aten::remainder"},
                              {"aten::pow"},
                              {"aten::matmul"},
                              {"aten::bitwise_and"},
                              {"aten::bitwise_or"},
                              {"aten::bitwise_xor"},
                              {"aten::bitwise_left_shift"},
                              {"aten::bitwise_right_shift"},
                              {"aten::add_"},
                              {"aten::sub_"},
                              {"aten::mul_"},
                              {"aten::div_"},
                              {"aten::floordiv_", "floor_divide_"},
                              {"aten::remainder_"},
                              {"aten::pow_"},
                              {"aten::bitwise_and_"},
                              {"aten::bitwise_or_"},
                              {"aten::bitwise_xor_"},
                              {"aten::bitwise_left_shift_"},
                              {"aten::bitwise_right_shift_"},
                              {"aten::neg"},
                              {"aten::abs"},
                              {"aten::bitwise_not"},
                              {"aten::lt"},
                              {"aten::le"},
                              {"aten::eq"},
                              {"aten::ne"},
                              {"aten::gt"},
                              {"aten::ge"},
                              {"aten::any"}};

inline PyObject* call_slot(SlotOperator& slot, PyObject* const* args, Py_ssize_t count) {
  const ProgramTable* table = slot.table();
  if (table == nullptr) [[unlikely]] {
    if (PyErr_Occurred() != nullptr) return nullptr;
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (torch_function_on) [[unlikely]] {
    PyObject* result;
    const char* name = slot.asked_as;
    if (name == nullptr) name = strstr(slot.qualified, "::") + 2;
    if (ask_operands(name, args, count, &result)) return result;
  }
  return call_table(*table, nullptr, false, args, count, nullptr);
}

// Converts NumPy arrays among the operands to tensors over their memory. Called only if an operator
// does not accept an operand, so that other operands cost nothing.
PyObject* with_arrays(SlotOperator& slot, PyObject* a, PyObject* b) {
  static PyObject* name = PyUnicode_InternFromString("__array_interface__");
  PyObject* args[] = {a, b};
  Ref made[2];
  bool any = false;
  for (int i = 0; i < 2; ++i) {
    if (is_tensor(args[i]) || !PyObject_CheckBuffer(args[i])) continue;
    if (name == nullptr || PyObject_HasAttr(args[i], name) == 0) continue;
    TensorBase tensor = guarded(
        [&] { return tensor_from_data(args[i], ScalarType::Undefined, false); }, TensorBase());
    if (!tensor.defined()) return nullptr;
    made[i] = Ref(wrap(std::move(tensor)));
    if (!made[i]) return nullptr;
    args[i] = made[i].get();
    any = true;
  }
  if (!any) Py_RETURN_NOTIMPLEMENTED;
  return call_slot(slot, args, 2);
}
PyObject* call_two(SlotOperator& slot, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  PyObject* result = call_slot(slot, args, 2);
  if (result != Py_NotImplemented) [[likely]]
    return result;
  Py_DECREF(result);
  return with_arrays(slot, a, b);
}

template <Slot S>
PyObject* binary(PyObject* a, PyObject* b) {
  return call_two(slots[S], a, b);
}
template <Slot S>
PyObject* ternary(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<S>(a, b);
}
// A unary operator, for which Python has no fallback.
template <Slot S>
PyObject* unary(PyObject* a) {
  PyObject* result = call_slot(slots[S], &a, 1);
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return PyErr_Format(PyExc_TypeError, "%s: cannot be applied to this tensor", slots[S].qualified);
}

PyObject* divmod(PyObject* a, PyObject* b) {
  Ref quotient(binary<kFloorDivide>(a, b));
  if (!quotient || quotient.get() == Py_NotImplemented) return quotient.release();
  Ref remainder(binary<kRemainder>(a, b));
  if (!remainder || remainder.get() == Py_NotImplemented) return remainder.release();
  return PyTuple_Pack(2, quotient.get(), remainder.get());
}
PyObject* positive(PyObject* a) {
  Py_INCREF(a);
  return a;
}

int truth(PyObject* self) {
  lamella_tensor* tensor = tensor_of(self);
  if (tensor->numel != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "bool: expected a tensor of one element, got one of %lld; use any() or all()",
                 static_cast<long long>(tensor->numel));
    return -1;
  }
  if (!note_read(tensor, "bool()")) return -1;
  lamella_value value;
  double parts[2];
  if (read_element(tensor, &value, parts) != Match::kYes) return -1;
  if (value.tag == LAMELLA_COMPLEX) return parts[0] != 0 || parts[1] != 0;
  return value.tag == LAMELLA_DOUBLE ? value.as.d != 0 : value.as.i != 0;
}

// Conversions of several elements raise ValueError, as NumPy's arrays do, while item() raises
// RuntimeError.
Ref number_of(lamella_tensor* tensor, const char* what) {
  if (!note_read(tensor, what)) return Ref();
  if (tensor->numel != 1) {
    PyErr_Format(PyExc_ValueError, "%s: expected a tensor of one element, got one of %lld elements",
                 what, static_cast<long long>(tensor->numel));
    return Ref();
  }
  Ref item(tensor_item(tensor));
  if (!item || !PyComplex_Check(item.get())) return item;
  Py_complex number = PyComplex_AsCComplex(item.get());
  if (number.imag == 0) return Ref(PyFloat_FromDouble(number.real));
  PyErr_Format(PyExc_RuntimeError, "%s: expected a real number, got %R", what, item.get());
  return Ref();
}
PyObject* as_int(PyObject* self) {
  Ref item = number_of(tensor_of(self), "int()");
  return item ? PyNumber_Long(item.get()) : nullptr;
}
PyObject* as_float(PyObject* self) {
  Ref item = number_of(tensor_of(self), "float()");
  return item ? PyNumber_Float(item.get()) : nullptr;
}
PyObject* as_index(PyObject* self) {
  lamella_tensor* tensor = tensor_of(self);
  if (tensor->numel != 1 || !is_integral(static_cast<ScalarType>(tensor->scalar_type), true)) {
    PyErr_SetString(PyExc_TypeError,
                    "index: expected a tensor of one integer to use it as an index");
    return nullptr;
  }
  return as_int(self);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static_assert(kLe - kLt == Py_LE - Py_LT && kEq - kLt == Py_EQ - Py_LT &&
                kNe - kLt == Py_NE - Py_LT && kGt - kLt == Py_GT - Py_LT &&
                kGe - kLt == Py_GE - Py_LT);
  return call_two(slots[kLt + op], a, b);
}

int contains(PyObject* self, PyObject* item) {
  Ref equal(compare(self, item, Py_EQ));
  if (equal && equal.get() == Py_NotImplemented) {
    PyErr_Format(PyExc_RuntimeError, "in: expected a tensor or a number, got %s",
                 Py_TYPE(item)->tp_name);
    return -1;
  }
  if (!equal) return -1;
  PyObject* argument = equal.get();
  Ref any(call_slot(slots[kAny], &argument, 1));
  return any ? PyObject_IsTrue(any.get()) : -1;
}

Py_ssize_t length(PyObject* self) {
  lamella_tensor* tensor = tensor_of(self);
  if (tensor->ndim > 0) return static_cast<Py_ssize_t>(tensor->sizes[0]);
  PyErr_SetString(PyExc_TypeError, "len: expected a tensor with dimensions, got one without");
  return -1;
}
PyObject* subscript(PyObject* self, PyObject* key) {
  PyObject* args[] = {self, key};
  PyObject* result;
  if (torch_function_on && ask_operands("__getitem__", args, 2, &result)) [[unlikely]]
    return result;
  return tensor_subscript(self, key);
}
PyObject* item_at(PyObject* self, Py_ssize_t index) {
  Ref key(PyLong_FromSsize_t(index));
  return key ? subscript(self, key.get()) : nullptr;
}
PyObject* iterate(PyObject* self) {
  if (tensor_of(self)->ndim > 0) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError, "iter: expected a tensor with dimensions, got one without");
  return nullptr;
}

PyNumberMethods number;
PySequenceMethods sequence;
PyMappingMethods mapping;

}  // namespace

void fill_number_slots(PyTypeObject* type) {
  number.nb_add = binary<kAdd>;
  number.nb_subtract = binary<kSub>;
  number.nb_multiply = binary<kMul>;
  number.nb_true_divide = binary<kTrueDivide>;
  number.nb_floor_divide = binary<kFloorDivide>;
  number.nb_remainder = binary<kRemainder>;
  number.nb_power = ternary<kPow>;
  number.nb_matrix_multiply = binary<kMatmul>;
  number.nb_and = binary<kAnd>;
  number.nb_or = binary<kOr>;
  number.nb_xor = binary<kXor>;
  number.nb_lshift = binary<kLShift>;
  number.nb_rshift = binary<kRShift>;
  number.nb_inplace_add = binary<kInplaceAdd>;
  number.nb_inplace_subtract = binary<kInplaceSub>;
  number.nb_inplace_multiply = binary<kInplaceMul>;
  number.nb_inplace_true_divide = binary<kInplaceTrueDivide>;
  number.nb_inplace_floor_divide = binary<kInplaceFloorDivide>;
  number.nb_inplace_remainder = binary<kInplaceRemainder>;
  number.nb_inplace_power = ternary<kInplacePow>;
  number.nb_inplace_and = binary<kInplaceAnd>;
  number.nb_inplace_or = binary<kInplaceOr>;
  number.nb_inplace_xor = binary<kInplaceXor>;
  number.nb_inplace_lshift = binary<kInplaceLShift>;
  number.nb_inplace_rshift = binary<kInplaceRShift>;
  number.nb_negative = unary<kNeg>;
  number.nb_positive = positive;
  number.nb_absolute = unary<kAbs>;
  number.nb_invert = unary<kInvert>;
  number.nb_divmod = divmod;
  number.nb_bool = truth;
  number.nb_int = as_int;
  number.nb_float = as_float;
  number.nb_index = as_index;
  sequence.sq_length = length;
  sequence.sq_item = item_at;
  sequence.sq_contains = contains;
  mapping.mp_length = length;
  mapping.mp_subscript = subscript;
  mapping.mp_ass_subscript = tensor_assign;
  type->tp_as_number = &number;
  type->tp_as_sequence = &sequence;
  type->tp_as_mapping = &mapping;
  type->tp_richcompare = compare;
  type->tp_iter = iterate;
}

}  // namespace lamella::python
