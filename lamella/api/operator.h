// Operator<Entry, R(A...)>: the members of every generated ops::NAME, which looks up its operator
// by name once.
#pragma once
#include "lamella/api/tensor.h"
#include "lamella/dispatch/operator_handle.h"

namespace lamella::detail {

// The operator, found and checked against the C++ signature. Throws if it is not defined.
template <class Signature>
LAMELLA_COLD const lamella_operator* find_typed(const char* name, const char* overload_name) {
  const lamella_operator* op = nullptr;
  check(lamella_find_operator(name, overload_name, &op));
  return OperatorHandle(op).typed<Signature>().impl();
}

constexpr const char* text_behind(const char* text) {
  while (*text != 0) ++text;
  return text + 1;
}
// `Entry` stores the three texts below as one, separated by zeros: every file that includes an
// operator compiles its entry, and the texts are split only where they are used.
template <class Entry, class Signature>
struct Operator;
template <class Entry, class R, class... A>
struct Operator<Entry, R(A...)> : Entry {
  using schema = R(A...);
  static constexpr const char* name = Entry::texts;
  static constexpr const char* overload_name = text_behind(name);
  static constexpr const char* schema_str = text_behind(overload_name);

  static TypedOperatorHandle<schema> handle() {
    const lamella_operator* op = __atomic_load_n(&found_, __ATOMIC_ACQUIRE);
    if (LAMELLA_UNLIKELY(op == nullptr)) {
      op = find_typed<schema>(name, overload_name);
      __atomic_store_n(&found_, op, __ATOMIC_RELEASE);
    }
    return TypedOperatorHandle<schema>(op);
  }
  // Computes the key set from the arguments and this thread.
  static R call(A... arguments) { return handle().call(std::forward<A>(arguments)...); }
  // Calls with the given key set.
  static R redispatch(DispatchKeySet keys, A... arguments) {
    return handle().redispatch(keys, std::forward<A>(arguments)...);
  }

 private:
  LAMELLA_HIDDEN static inline const lamella_operator* found_ = nullptr;
};

// Op, but only when the template around it is instantiated.
template <int, class Op>
struct Lazy : Op {};

}  // namespace lamella::detail
