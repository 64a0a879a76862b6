// liblamella_bridge.so: operators of Lamella in other frameworks. Its functions are called from
// Python by ctypes; the library has no symbol of Python, torch or XLA. Stands on the C ABI alone.
#pragma once
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lamella/abi/operators.h"

#define LAMELLA_BRIDGE_API extern "C" __attribute__((visibility("default")))

namespace lamella::bridge {

// What Lamella or the other framework reports, as it stands.
struct Failure : std::runtime_error {
  explicit Failure(const std::string& text, lamella_status kind = LAMELLA_ERROR)
      : std::runtime_error(text), kind(kind) {}
  lamella_status kind;
};
inline void check(lamella_status status) {
  if (status != LAMELLA_OK) throw Failure(lamella_error_text(), status);
}

inline void release(lamella_tensor* tensor) {
  if (tensor == nullptr) return;
  // The last reference is counted down without an atomic operation: nothing else has one to copy.
  if (__atomic_load_n(&tensor->references, __ATOMIC_ACQUIRE) == 1) {
    tensor->references = 0;
  } else if (__atomic_sub_fetch(&tensor->references, 1, __ATOMIC_ACQ_REL) != 0) {
    return;
  }
  lamella_tensor_destroy(tensor);
}
inline void retain(lamella_tensor* tensor) {
  __atomic_add_fetch(&tensor->references, 1, __ATOMIC_RELAXED);
}

// One argument or return of a schema, as far as values are converted.
enum class Kind : uint8_t {
  kTensor,
  kInt,
  kDouble,
  kBool,
  kString,
  kDevice,
  kIntList,
  kDoubleList,
  kBoolList,
  kTensorList,
  // Without a form in other frameworks' calls. torch.cpp has one for the first two.
  kScalar,
  kOptionalTensors,  // Tensor?[]
  kOther
};
struct Argument {
  Kind kind = Kind::kOther;
  bool optional = false;
  bool write = false;
  bool number = false;     // ScalarType, Layout, MemoryFormat: an int whose width is 32 bits
  std::string name, type;  // without aliases: "Tensor?[]"
  std::string aliases;     // "a!" of Tensor(a!)
};
std::vector<Argument> arguments_of(const lamella_operator* op, int32_t kind);

// A zeroed array whose size is known when it is made, on the stack where it is small.
template <class T>
class Scratch {
 public:
  explicit Scratch(size_t size) : size_(size) {
    if (size > kInline) more_ = std::make_unique<T[]>(size);
    data_ = size > kInline ? more_.get() : inline_;
    if constexpr (std::is_trivially_default_constructible_v<T>) std::fill_n(data_, size, T());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  static constexpr size_t kInline = 12;
  size_t size_;
  T* data_;
  T inline_[kInline];
  std::unique_ptr<T[]> more_;
};

// What an operator gives, owned.
struct Results : Scratch<lamella_value> {
  explicit Results(const lamella_operator* op) : Scratch(op->return_count), op(op) {}
  // Calls the operator. A call that fails owns nothing of what it leaves here.
  lamella_status call(const lamella_value* arguments) {
    const lamella_status status =
        lamella_call_boxed(op, arguments, op->argument_count, data(), op->return_count);
    if (status != LAMELLA_OK) std::fill(begin(), end(), lamella_value{});
    return status;
  }
  const lamella_operator* op;
  ~Results() {
    for (lamella_value& value : *this) {
      if (value.tag == LAMELLA_TENSOR) {
        release(value.as.tensor);
      } else if (value.tag != LAMELLA_NONE) {
        lamella_value_release(&value);
      }
    }
  }
};
// A contiguous copy with memory of its own.
lamella_tensor* copied(lamella_tensor* tensor);

// Runs `body` and keeps its failure for this thread as lamella_error_text() does.
template <class Body>
lamella_status guarded(Body&& body) noexcept {
  try {
    body();
    return LAMELLA_OK;
  } catch (const Failure& failure) {
    std::string_view text = failure.what();
    return lamella_fail(failure.kind, text.data(), text.size());
  } catch (const std::exception& failure) {
    std::string_view text = failure.what();
    return lamella_fail(LAMELLA_INTERNAL_ERROR, text.data(), text.size());
  }
}

}  // namespace lamella::bridge
