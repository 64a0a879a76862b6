// The argument parser: Python values into borrowed lamella_values.
#pragma once
#include "python/src/program.h"

namespace lamella::python {

// The memory that the values of one call point to. It is on the C stack; small calls need no more.
class Frame {
 public:
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    if (owned_count_ != 0 || more_ != nullptr) [[unlikely]]
      clear();
  }

  uint64_t keys = 0;           // of all tensors seen
  uint64_t device = 0;         // keys of a device argument
  uint64_t work = 0;           // elements of all tensors seen
  bool requires_grad = false;  // of the result of a factory

  void see(lamella_tensor* tensor) {
    keys |= tensor->key_set;
    work += static_cast<uint64_t>(tensor->numel);
  }
  // Uninitialised memory that lives as long as the frame.
  void* allocate(size_t bytes) {
    size_t words = (bytes + 7) / 8;
    if (words <= kWords - used_) [[likely]] {
      void* result = words_ + used_;
      used_ += words;
      return result;
    }
    return allocate_more(bytes);
  }
  // Takes over a reference until the frame ends.
  void own(PyObject* object);
  void own(lamella_tensor* tensor);
  // Takes over an owned value.
  void own(const lamella_value& value);
  // A copy of a list's items, each with a reference until the frame ends: Python code that runs in
  // a conversion or in the call may change the list.
  PyObject** hold(PyObject* const* items, Py_ssize_t size);
  // Enters a nested list or dictionary; false with a Python error set if it is nested too deeply,
  // as one that contains itself is.
  bool enter_nested();
  void leave_nested() { --nested_; }
  // Empties the frame, before the next overload is tried.
  void reset() {
    keys = device = work = 0;
    requires_grad = false;
    used_ = 0;
    if (owned_count_ != 0 || more_ != nullptr) [[unlikely]]
      clear();
  }

 private:
  struct Owned {
    enum : uint8_t { kObject, kObjects, kTensor, kValue } kind;
    union {
      PyObject* object;
      struct {
        PyObject** items;
        Py_ssize_t size;
      } objects;
      lamella_tensor* tensor;
      lamella_value value;
    };
  };
  struct More {
    More* next;
  };
  static constexpr size_t kWords = 48;
  static constexpr size_t kOwned = 8;
  void* allocate_more(size_t bytes);
  Owned& add_owned();
  void clear();

  size_t used_ = 0;
  uint32_t owned_count_ = 0;
  uint32_t nested_ = 0;
  More* more_ = nullptr;
  std::vector<Owned>* owned_more_ = nullptr;
  Owned owned_[kOwned];
  uint64_t words_[kWords];
};

enum class Match : int8_t { kNo = 0, kYes = 1, kError = -1 };

// Converts one value. `numbers`: a number is accepted for a tensor. kError: a Python error is set.
Match convert(const Param& param, PyObject* object, bool numbers, Frame& frame,
              lamella_value* value);
// Converts any Python value by its own type. Lists and dictionaries may be nested 100 deep.
Match convert_any(PyObject* object, Frame& frame, lamella_value* value);
// Converts a value to a schema type; for the returns of kernels in Python.
Match convert_type(SchemaType type, PyObject* object, Frame& frame, lamella_value* value);

// Converts all arguments of a call into `values` (program.argument_count of them).
Match match(const Program& program, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
            bool numbers, Frame& frame, lamella_value* values);

// The index of the param that a keyword names, also by a synonym, or -1. `out` is never found.
int find_keyword(const Program& program, PyObject* keyword);
bool is_out_name(PyObject* keyword);
bool is_requires_grad_name(PyObject* keyword);

// Sets the TypeError that lists the signatures and what was given; returns NULL.
PyObject* raise_mismatch(const ProgramTable& table, const char* name, bool is_method,
                         PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// A number as a 0-dimensional tensor that is weak in type promotion; NULL with an error set, or
// without an error if the object is not a number.
lamella_tensor* number_tensor(PyObject* object);

}  // namespace lamella::python
