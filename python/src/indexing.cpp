// tensor[key] and tensor[key] = value, by NumPy's and PyTorch's rules.
//
// Note [Indexing]
//   Integers, slices, None and ... become views, one operator each. Tensors, lists, arrays and
//   masks are collected, one for each dimension that they take, and go to `index` or `index_put_`
//   together at the end. A mask is equivalent to the indices of its true elements, so one of k
//   dimensions takes k.
#include <algorithm>

#include "lamella/api/tensor.h"
#include "lamella/dispatch/signature.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"

namespace lamella::python {
namespace {

KnownOperator select_op{"aten::select", "int"}, slice_op{"aten::slice", "Tensor"},
    unsqueeze_op{"aten::unsqueeze", ""}, index_op{"aten::index", "Tensor"},
    index_put_op{"aten::index_put_", ""}, nonzero_op{"aten::nonzero", ""},
    alias_op{"aten::alias", ""}, flip_op{"aten::flip", ""}, copy_op{"aten::copy_", ""},
    fill_op{"aten::fill_", "Scalar"};

bool is_bool(const lamella_tensor* tensor) {
  return tensor->scalar_type == static_cast<uint8_t>(ScalarType::Bool) ||
         tensor->scalar_type == static_cast<uint8_t>(ScalarType::Byte);
}

// Calls an operator that makes a view by its typed form, without boxing and without releasing the
// GIL, as views are fast. The arguments are in C form; the result is owned, and NULL if an error
// was set.
template <class Signature, class... Forms>
[[gnu::always_inline]] inline lamella_tensor* call_view(KnownOperator& known,
                                                        lamella_tensor* tensor, Forms... forms) {
  using Call = abi::Call<Signature>;
  const lamella_operator* op = known.get();
  if (op == nullptr) return nullptr;
  uint64_t keys = abi::with_thread(tensor->key_set, op, lamella_thread);
  lamella_tensor* result = nullptr;
  uint32_t before = abi::enter_call();
  const lamella_kernel* kernel = abi::kernel_of(op, keys);
  lamella_status status = kernel->typed != nullptr
                              ? reinterpret_cast<typename Call::Typed>(kernel->typed)(
                                    kernel, keys, tensor, forms..., &result)
                              : Call::invoke_boxed(kernel, op, keys, tensor, forms..., &result);
  abi::leave_call(before);
  if (status != LAMELLA_OK || result == nullptr) [[unlikely]]
    return raise_without_tensor(op, status);
  return result;
}
using Bound = abi::Maybe<int64_t>;
[[gnu::always_inline]] inline lamella_tensor* call_slice(lamella_tensor* tensor, int64_t dim,
                                                         Bound start, Bound stop, int64_t step) {
  return call_view<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>,
                          int64_t)>(slice_op, tensor, dim, start, stop, step);
}
[[gnu::always_inline]] inline lamella_tensor* call_select(lamella_tensor* tensor, int64_t dim,
                                                          int64_t index) {
  return call_view<Tensor(const Tensor&, int64_t, int64_t)>(select_op, tensor, dim, index);
}
// The object of a result of call_view().
inline PyObject* wrap_result(lamella_tensor* result) {
  return result != nullptr ? wrap(result) : nullptr;
}

// Thrown while a Python error is set.
struct Failed {};

TensorBase need(TensorBase tensor) {
  if (!tensor.defined()) throw Failed();
  return tensor;
}
TensorBase need(lamella_tensor* owned) { return need(TensorBase::adopt(owned)); }

class Indexer {
 public:
  explicit Indexer(lamella_tensor* tensor)
      : current_(TensorBase::borrow(tensor)), ndim_(current_.dim()) {}

  // A list that contains a slice, None, an ellipsis, a tensor or a sequence is treated as a tuple,
  // not as data.
  static bool stands_for_tuple(PyObject* key) {
    if (!PyList_CheckExact(key) || PyList_GET_SIZE(key) > 32) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
      PyObject* item = PyList_GET_ITEM(key, i);
      if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item) || is_tensor(item) ||
          (PySequence_Check(item) && !PyUnicode_Check(item))) {
        return true;
      }
    }
    return false;
  }

  void apply(PyObject* key) {
    Ref listed;
    if (LAMELLA_UNLIKELY(stands_for_tuple(key))) {
      listed = Ref(PyList_AsTuple(key));
      if (!listed) throw Failed();
      key = listed.get();
    }
    if (!PyTuple_Check(key)) {
      one(key, &key, 1, 0);
      return;
    }
    PyObject** items = &PyTuple_GET_ITEM(key, 0);
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    for (Py_ssize_t i = 0; i < count; ++i) one(items[i], items, count, i);
  }

  bool advanced() const { return !indices_.empty(); }
  bool turned() const { return !turned_.empty(); }
  // A tensor of the view's shape, reversed along the dimensions of slices with steps below 0.
  TensorBase reversed(const TensorBase& tensor) {
    return need(
        call_known(flip_op, {tensor_value(tensor.impl()),
                             list_value(LAMELLA_INT_LIST, turned_.data(), turned_.size())}));
  }
  const TensorBase& view() const { return current_; }
  lamella_value index_list(std::vector<lamella_tensor*>& storage) const {
    for (const TensorBase& index : indices_) storage.push_back(index.impl());
    return list_value(LAMELLA_TENSOR_LIST, storage.data(), storage.size());
  }

 private:
  // A mask, or indices of any integer type, as a tensor.
  TensorBase index_from_data(PyObject* key) {
    TensorBase made = need(tensor_from_data(key, ScalarType::Undefined, false));
    bool is_index = is_integral(made.scalar_type(), false) && !is_bool(made.impl());
    if (!is_index || made.scalar_type() == ScalarType::Int) return made;
    Ref narrow(wrap(std::move(made)));
    return need(tensor_from_data(narrow.get(), ScalarType::Long, false));
  }

  // The number of dimensions that a key takes.
  int64_t taken(PyObject* key) {
    if (key == Py_None || key == Py_Ellipsis || PyBool_Check(key)) return 0;
    if (is_tensor(key) && is_bool(tensor_of(key))) return tensor_of(key)->ndim;
    if (PyLong_Check(key) || PySlice_Check(key) || is_tensor(key)) return 1;
    if (PySequence_Check(key) || PyObject_CheckBuffer(key)) {
      // A mask may be an array or nested lists.
      TensorBase tensor = index_from_data(key);
      return is_bool(tensor.impl()) ? tensor.dim() : 1;
    }
    return 1;
  }

  void one(PyObject* key, PyObject** items, Py_ssize_t count, Py_ssize_t at) {
    if (PyLong_CheckExact(key)) {
      int64_t index;
      if (read_int(key, &index) == Match::kError) throw Failed();
      select(index);
    } else if (PySlice_Check(key)) {
      slice(key);
    } else if (key == Py_None) {
      current_ = need(call_known(unsqueeze_op, {tensor_value(current_.impl()), int_value(dim_)}));
      ++dim_;
    } else if (key == Py_Ellipsis) {
      if (seen_ellipsis_) {
        PyErr_SetString(PyExc_IndexError, "index: expected at most one ellipsis ('...')");
        throw Failed();
      }
      seen_ellipsis_ = true;
      int64_t rest = 0;
      for (Py_ssize_t i = at + 1; i < count; ++i) rest += taken(items[i]);
      int64_t skipped = current_.dim() - dim_ - rest;
      for (Py_ssize_t i = at + 1; i < count; ++i) {
        if (items[i] == Py_Ellipsis) skipped = 0;  // reported when it is met
      }
      if (skipped < 0) too_many();
      dim_ += skipped;
    } else if (PyBool_Check(key)) {
      mask_of_no_dimensions(key == Py_True);
    } else if (is_tensor(key)) {
      tensor(tensor_ref(key));
    } else if (PyIndex_Check(key) && !PySequence_Check(key)) {
      int64_t index;
      Match m = read_int(key, &index);
      if (m == Match::kError) throw Failed();
      if (m == Match::kNo) {
        bool flag;
        if (!read_bool(key, &flag)) wrong(key);
        mask_of_no_dimensions(flag);
      } else {
        select(index);
      }
    } else if ((PySequence_Check(key) || PyObject_CheckBuffer(key)) && !PyUnicode_Check(key)) {
      tensor(index_from_data(key), false);
    } else {
      bool flag;
      if (!read_bool(key, &flag)) wrong(key);
      mask_of_no_dimensions(flag);
    }
  }

  [[noreturn]] void wrong(PyObject* key) {
    PyErr_Format(PyFloat_Check(key) ? PyExc_IndexError : PyExc_TypeError,
                 "index: expected an int, a slice, None, ..., or a tensor or sequence of ints or "
                 "bools, got %s",
                 Py_TYPE(key)->tp_name);
    throw Failed();
  }
  [[noreturn]] void too_many() {
    PyErr_Format(PyExc_IndexError,
                 "index: expected at most %lld indices for a tensor of %lld dimensions",
                 static_cast<long long>(ndim_), static_cast<long long>(ndim_));
    throw Failed();
  }

  void select(int64_t index) {
    if (dim_ >= current_.dim()) too_many();
    int64_t size = current_.impl()->sizes[dim_];
    if (index < -size || index >= size) {
      PyErr_Format(PyExc_IndexError,
                   "index: expected an index from %lld to %lld for dimension %lld, got %lld",
                   static_cast<long long>(-size), static_cast<long long>(size - 1),
                   static_cast<long long>(dim_), static_cast<long long>(index));
      throw Failed();
    }
    current_ = need(call_select(current_.impl(), dim_, index));
  }

  Bound bound(PyObject* object) {
    if (object == Py_None) return {0, 0};
    int64_t number;
    // Bounds that do not fit are clamped, as Python does.
    if (PyLong_Check(object)) {
      int over = 0;
      number = PyLong_AsLongLongAndOverflow(object, &over);
      if (over != 0) number = over > 0 ? INT64_MAX : INT64_MIN;
      return {number, 1};
    }
    Match m = read_int(object, &number);
    if (m == Match::kNo) {
      PyErr_Format(PyExc_TypeError, "slice: expected bounds to be ints or None, got %s",
                   Py_TYPE(object)->tp_name);
    }
    if (m != Match::kYes) throw Failed();
    return {number, 1};
  }

  void slice(PyObject* key) {
    if (dim_ >= current_.dim()) too_many();
    auto* slice = reinterpret_cast<PySliceObject*>(key);
    if (slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None) {
      ++dim_;
      return;
    }
    int64_t step = slice->step == Py_None ? 1 : bound(slice->step).value;
    if (step == 0) {
      PyErr_SetString(PyExc_ValueError, "slice: expected a step other than 0, got 0");
      throw Failed();
    }
    Bound start = bound(slice->start), stop = bound(slice->stop);
    if (step < 0) turn(&start, &stop, &step);
    current_ = need(call_slice(current_.impl(), dim_, start, stop, step));
    ++dim_;
  }

  // Converts a slice with a step below 0 to the ascending slice over the same elements; the result
  // is reversed later.
  void turn(Bound* start, Bound* stop, int64_t* step) {
    auto first = static_cast<Py_ssize_t>(start->has == 0 ? INT64_MAX : start->value);
    auto end = static_cast<Py_ssize_t>(stop->has == 0 ? INT64_MIN : stop->value);
    auto by = static_cast<Py_ssize_t>(std::max(*step, -INT64_MAX));
    auto size = static_cast<Py_ssize_t>(current_.impl()->sizes[dim_]);
    Py_ssize_t count = PySlice_AdjustIndices(size, &first, &end, by);
    *start = {count > 0 ? first + (count - 1) * by : 0, 1};
    *stop = {count > 0 ? first + 1 : 0, 1};
    *step = -by;
    turned_.push_back(dim_);
  }

  void collect(TensorBase index) {
    indices_.resize(static_cast<size_t>(dim_) + 1);
    indices_[static_cast<size_t>(dim_)] = std::move(index);
    ++dim_;
  }

  // x[True] has a new first dimension of size 1, x[False] one of size 0.
  void mask_of_no_dimensions(bool flag) {
    current_ = need(call_known(unsqueeze_op, {tensor_value(current_.impl()), int_value(dim_)}));
    int64_t size = flag ? 1 : 0;
    lamella_tensor* index = nullptr;
    detail::check(
        lamella_tensor_empty(1, &size, static_cast<uint8_t>(ScalarType::Long), 0, -1, &index));
    if (flag) *static_cast<int64_t*>(index->data) = 0;
    collect(TensorBase::adopt(index));
  }

  void tensor(TensorBase index, bool has_type = true) {
    lamella_tensor* raw = index.impl();
    auto type = static_cast<ScalarType>(raw->scalar_type);
    if (has_type && type == ScalarType::Byte) [[unlikely]] {
      const char* text = "index: masks of uint8 are deprecated; use masks of bool";
      if (PyErr_WarnEx(PyExc_UserWarning, text, 1) != 0) throw Failed();
    }
    // A number that cannot be read (of a batched or meta tensor) is an index like other tensors.
    bool at_hand = raw->data != nullptr || is_bool(raw) || type == ScalarType::Byte;
    if (raw->ndim == 0 && is_integral(type, true) && at_hand) {
      lamella_value value;
      double parts[2];
      if (read_element(raw, &value, parts) != Match::kYes) throw Failed();
      if (type == ScalarType::Bool || type == ScalarType::Byte) {
        mask_of_no_dimensions(value.as.i != 0);
      } else {
        select(value.as.i);
      }
      return;
    }
    if (!has_type && raw->numel == 0 && raw->ndim == 1 && is_floating_point(type)) {
      // An empty list has no type, so it is taken as indices.
      int64_t none = 0;
      lamella_tensor* empty = nullptr;
      detail::check(
          lamella_tensor_empty(1, &none, static_cast<uint8_t>(ScalarType::Long), 0, -1, &empty));
      index = TensorBase::adopt(empty);
      raw = empty;
      type = ScalarType::Long;
    }
    if (is_barebones_unsigned(type)) {
      Ref narrow(wrap(std::move(index)));
      index = need(tensor_from_data(narrow.get(), ScalarType::Long, false));
      raw = index.impl();
      type = ScalarType::Long;
    }
    if (!is_integral(type, true)) {
      PyErr_Format(PyExc_IndexError, "index: expected tensors of integers or bools, got %s",
                   dtype_name(type));
      throw Failed();
    }
    if (!is_bool(raw)) {
      if (dim_ >= current_.dim()) too_many();
      collect(std::move(index));
      return;
    }
    if (dim_ + raw->ndim > current_.dim()) too_many();
    for (int d = 0; d < raw->ndim; ++d) {
      if (raw->sizes[d] != current_.impl()->sizes[dim_ + d]) {
        PyErr_Format(PyExc_IndexError,
                     "index: expected a mask of size %lld for dimension %lld, got %lld",
                     static_cast<long long>(current_.impl()->sizes[dim_ + d]),
                     static_cast<long long>(dim_ + d), static_cast<long long>(raw->sizes[d]));
        throw Failed();
      }
    }
    if (raw->ndim == 1) {
      collect(std::move(index));
      return;
    }
    TensorBase found = need(call_known(nonzero_op, {tensor_value(raw)}));
    for (int d = 0; d < raw->ndim; ++d) {
      collect(need(call_select(found.impl(), 1, d)));
    }
  }

  TensorBase current_;
  int64_t ndim_;  // of the tensor that is indexed
  std::vector<TensorBase> indices_;
  std::vector<int64_t> turned_;  // dimensions of the view that slices with steps below 0 left
  int64_t dim_ = 0;
  bool seen_ellipsis_ = false;
};

// Drops leading dimensions of size 1, as assignment allows.
TensorBase fit(TensorBase value, int64_t dims) {
  while (value.dim() > dims && value.impl()->sizes[0] == 1) {
    value = need(call_select(value.impl(), 0, 0));
  }
  return value;
}

// Reads the bound of a slice if it is a Python int or None.
inline bool plain_bound(PyObject* object, Bound* bound) {
  *bound = {0, object != Py_None};
  return bound->has == 0 || read_plain_int(object, &bound->value);
}

// The fast path for the most common keys: one int, or one ascending slice.
PyObject* simple(PyObject* self, PyObject* key, bool* done) {
  lamella_tensor* tensor = tensor_of(self);
  *done = false;
  if (tensor->ndim == 0) return nullptr;
  if (PySlice_Check(key)) {
    auto* slice = reinterpret_cast<PySliceObject*>(key);
    Bound start, stop, step;
    if (!plain_bound(slice->start, &start) || !plain_bound(slice->stop, &stop) ||
        !plain_bound(slice->step, &step) || (step.has != 0 && step.value <= 0)) {
      return nullptr;
    }
    *done = true;
    return wrap_result(call_slice(tensor, 0, start, stop, step.has != 0 ? step.value : 1));
  }
  Bound index;
  if (key == Py_None || !plain_bound(key, &index)) return nullptr;
  int64_t size = tensor->sizes[0];
  if (index.value < -size || index.value >= size) return nullptr;
  *done = true;
  return wrap_result(call_select(tensor, 0, index.value));
}

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* key) {
  bool done;
  PyObject* result = simple(self, key, &done);
  if (done) return result;
  try {
    Indexer indexer(tensor_of(self));
    indexer.apply(key);
    TensorBase view = indexer.turned() ? indexer.reversed(indexer.view()) : indexer.view();
    if (indexer.advanced()) {
      std::vector<lamella_tensor*> storage;
      return wrap(
          need(call_known(index_op, {tensor_value(view.impl()), indexer.index_list(storage)})));
    }
    if (view.impl() == tensor_of(self)) {
      view = need(call_known(alias_op, {tensor_value(view.impl())}));
    }
    return wrap(std::move(view));
  } catch (const Failed&) {
    return nullptr;
  } catch (...) {
    return raise_current_exception();
  }
}

int tensor_assign(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "del: elements of a tensor cannot be deleted");
    return -1;
  }
  try {
    Indexer indexer(tensor_of(self));
    indexer.apply(key);
    TensorBase view = indexer.view();
    auto type = static_cast<ScalarType>(view.impl()->scalar_type);
    double parts[2];
    lamella_value number;
    bool is_number = false;
    if (!is_tensor(value)) {
      Match m =
          read_above_int64(value, type, &number) ? Match::kYes : read_number(value, &number, parts);
      if (m == Match::kError) throw Failed();
      is_number = m == Match::kYes;
      if (is_number && number.tag == LAMELLA_COMPLEX) {
        number = list_value(LAMELLA_COMPLEX, parts, 2);
      }
    }
    if (is_number && !indexer.advanced()) {
      need(call_known(fill_op, {tensor_value(view.impl()), number}));
      return 0;
    }
    // Reversed elements are a copy, which is written and then copied back to the view.
    if (indexer.turned()) view = indexer.reversed(view);
    auto done = [&] {
      if (!indexer.turned()) return 0;
      TensorBase back = indexer.reversed(view);
      need(call_known(copy_op, {tensor_value(indexer.view().impl()), tensor_value(back.impl()),
                                bool_value(false)}));
      return 0;
    };
    TensorBase source;
    if (is_tensor(value)) {
      source = tensor_ref(value);
    } else if (is_number) {
      lamella_tensor* made = nullptr;
      detail::check(lamella_tensor_empty(0, nullptr, static_cast<uint8_t>(type), 0, -1, &made));
      source = TensorBase::adopt(made);
      if (!store_element(made->data, type, number, parts)) throw Failed();
    } else {
      source = need(tensor_from_data(value, type, false));
    }
    if (!indexer.advanced()) {
      source = fit(std::move(source), view.dim());
      need(call_known(copy_op,
                      {tensor_value(view.impl()), tensor_value(source.impl()), bool_value(false)}));
      return done();
    }
    // A tensor of several elements is put as it is: index_put_ refuses those of another dtype.
    if (source.scalar_type() != type && (source.dim() == 0 || !is_tensor(value))) {
      static SlotOperator to_op{"aten::to"};
      const ProgramTable* table = to_op.table();
      Ref object(wrap(source)), dtype(dtype_object(type));
      PyObject* args[] = {object.get(), dtype.get()};
      Ref cast(table != nullptr ? call_table(*table, "to", false, args, 2, nullptr) : nullptr);
      if (!cast) throw Failed();
      source = tensor_ref(cast.get());
    }
    // The indexed shape may have fewer dimensions than the view: no leading ones are left to fit.
    source = fit(std::move(source), 0);
    std::vector<lamella_tensor*> storage;
    need(call_known(index_put_op, {tensor_value(view.impl()), indexer.index_list(storage),
                                   tensor_value(source.impl()), bool_value(false)}));
    return done();
  } catch (const Failed&) {
    return -1;
  } catch (...) {
    raise_current_exception();
    return -1;
  }
}

}  // namespace lamella::python
