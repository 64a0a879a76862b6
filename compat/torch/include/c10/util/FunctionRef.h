// c10::function_ref: a non-owning reference to a callable.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include <c10/lamella_names.h>

namespace c10 {
template <class F>
class function_ref;

template <class R, class... A>
class function_ref<R(A...)> {
 public:
  function_ref() = default;
  function_ref(std::nullptr_t) {}  // NOLINT: as in PyTorch
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref>)
  function_ref(F&& callable)  // NOLINT: as in PyTorch
      : call_([](intptr_t callable, A... args) -> R {
          return (*reinterpret_cast<std::remove_reference_t<F>*>(callable))(
              std::forward<A>(args)...);
        }),
        callable_(reinterpret_cast<intptr_t>(&callable)) {}
  R operator()(A... args) const { return call_(callable_, std::forward<A>(args)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  R (*call_)(intptr_t, A...) = nullptr;
  intptr_t callable_ = 0;
};
}  // namespace c10
