// Guards on what a compiled function read besides its arguments. See Note [Guards on reads] in
// compiled_outside.cpp.
#pragma once
#include <vector>

#include "python/src_hlo/compiled_guards.h"

namespace lamella::python {

// One read, or the container that the following `count` reads are made from.
struct OutsideGuard {
  enum class Kind : uint8_t {
    Object,    // `key`: its type; `expected`: its dictionary of attributes, or empty
    Function,  // `key`: its code; `expected`: its defaults; `more`: those of keywords
    Type,      // `key`: says whether the names that were looked up are unchanged
    Cell,      // without `expected` it was empty
    Dict,      // `expected`: the tuple of its keys, or empty where their number does not matter
    DictItem,  // `key`; without `expected` there was no value, and _ANY stands for any value
    List,      // `key`: its length, or None where that does not matter
    ListItem,  // `key`: the index
    Call,      // a call of `object` with `key` returns `expected`
    Tensor,
  };
  Kind kind;
  Ref object, key, expected, more;
  Py_ssize_t index = -1;  // the number `key` of lists
  size_t count = 0;
  // The version at which a dictionary or type was compared last: while it has that version, all
  // that was read from it is unchanged.
  mutable uint64_t version = 0;
  std::vector<TensorGuard> tensor = {};
};

class OutsideGuards {
 public:
  // Throws PythonError unless `rows` is a list as Guards.guards() in lamella/_compile_guards.py
  // makes: (kind, object, key[, expected[, more]]).
  explicit OutsideGuards(PyObject* rows);
  // The number of the first guard that fails, whose present value, borrowed or NULL, goes to `now`;
  // -1 if all hold.
  Py_ssize_t first_changed(Ref* now = nullptr) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  bool holds(const OutsideGuard& guard, Ref* now) const;
  std::vector<OutsideGuard> guards_;
};

// The guards of a _Guards object; throws PythonError for other objects.
const OutsideGuards& outside_guards_of(PyObject* object);

int add_outside_guards(PyObject* module);  // compiled_outside.cpp
int add_reads(PyObject* module);           // compiled_reads.cpp

}  // namespace lamella::python
