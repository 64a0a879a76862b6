// Guards of compiled functions: the conditions under which a program may run for a call. See Note
// [Calls of compiled functions] in compiled.cpp.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/layers/autograd/variable.h"
#include "python/src/object.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {

// The layers and modes of a thread.
struct CallState {
  uint64_t included, excluded;
  uint32_t modes;
  int cast;  // dtype of autocast
  int default_dtype;
  bool operator==(const CallState&) const = default;
};
CallState state_now();

constexpr uint32_t kGuardedFlags = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG |
                                   LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_INFERENCE |
                                   LAMELLA_TENSOR_TANGENT | LAMELLA_TENSOR_WRAPPER;
// The flags that guards compare; with kHasHooks, which no tensor has, for hooks on gradients.
constexpr uint32_t kHasHooks = 1u << 31;
inline uint32_t guarded_flags(const lamella_tensor* tensor) {
  uint32_t flags = tensor->flags & kGuardedFlags;
  bool hooked = (flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0 && autograd::has_hooks(tensor);
  return hooked ? flags | kHasHooks : flags;
}
// The properties of a tensor that a program was made for: all but its elements.
struct TensorGuard {
  explicit TensorGuard(PyObject* object) : type(Py_TYPE(object)) {
    const lamella_tensor* tensor = tensor_of(object);
    key_set = tensor->key_set;
    flags = guarded_flags(tensor);
    scalar_type = tensor->scalar_type;
    device_type = tensor->device_type;
    device_index = tensor->device_index;
    ndim = tensor->sizes == nullptr ? 0 : tensor->ndim;
    dims.assign(tensor->sizes, tensor->sizes + ndim);
    dims.insert(dims.end(), tensor->strides, tensor->strides + ndim);
  }
  bool fits(PyObject* object) const {
    if (Py_TYPE(object) != type) return false;
    const lamella_tensor* tensor = tensor_of(object);
    if (tensor->key_set != key_set || guarded_flags(tensor) != flags ||
        tensor->scalar_type != scalar_type || tensor->device_index != device_index ||
        tensor->ndim != ndim) {
      return false;
    }
    for (int32_t d = 0; d < ndim; ++d) {
      if (tensor->sizes[d] != dims[static_cast<size_t>(d)] ||
          tensor->strides[d] != dims[static_cast<size_t>(ndim + d)]) {
        return false;
      }
    }
    return true;
  }
  bool is_cuda() const { return device_type == static_cast<uint8_t>(DeviceType::CUDA); }
  PyTypeObject* type;
  uint64_t key_set;
  uint32_t flags;
  uint8_t scalar_type;
  uint8_t device_type;  // in the key set as well
  int8_t device_index;
  int32_t ndim;
  std::vector<int64_t> dims;  // sizes, then strides
};

// Whether a value is unchanged: numbers and text are compared by value, other objects by identity.
// False if a comparison raises.
bool is_same(PyObject* now, PyObject* before);

// Where a tensor that the function reads from outside is stored.
struct OutsidePlace {
  Ref container, key;  // without a key: a cell
  // The current value, borrowed; NULL if there is none.
  PyObject* get() const {
    if (!key) return PyCell_GET(container.get());
    if (PyList_CheckExact(container.get())) {
      Py_ssize_t at = PyLong_AsSsize_t(key.get());
      return at < PyList_GET_SIZE(container.get()) ? PyList_GET_ITEM(container.get(), at) : nullptr;
    }
    PyObject* found = PyDict_GetItemWithError(container.get(), key.get());
    if (found == nullptr) PyErr_Clear();
    return found;
  }
};

OutsidePlace place_from(PyObject* pair);  // of (container, key or None)

// How values nest: a form of lamella._nest.
struct Pattern {
  enum class Kind : uint8_t { Tensor, Fixed, Tuple, List, Dict };
  Kind kind = Kind::Fixed;
  size_t index = 0;  // of a tensor
  Ref value;         // the fixed value, or the tuple of a dictionary's keys
  std::vector<Pattern> items;
};
// Empty for forms that only Python code can flatten.
std::optional<Pattern> pattern_of(PyObject* form);

// A Python sequence of sizes; throws PythonError.
std::vector<size_t> sizes_from(PyObject* numbers);

// A list of fixed capacity, on the stack if it is small.
template <class T>
class SmallList {
 public:
  explicit SmallList(size_t capacity) {
    if (capacity > kHere) more_.resize(capacity);
  }
  void push_back(T one) { data()[count_++] = std::move(one); }
  size_t size() const { return count_; }
  T* data() { return more_.empty() ? here_ : more_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> all() { return {data(), count_}; }

 private:
  static constexpr size_t kHere = 16;
  T here_[kHere] = {};
  std::vector<T> more_;
  size_t count_ = 0;
};
using Leaves = SmallList<PyObject*>;  // borrowed

// Whether an object matches the pattern; appends its tensors to `leaves`.
bool take(const Pattern& pattern, PyObject* object, const std::vector<TensorGuard>& guards,
          Leaves* leaves);
// The nested object of a pattern with these tensors, whose references it takes over.
PyObject* build(const Pattern& pattern, SmallList<Ref>& tensors);

}  // namespace lamella::python
