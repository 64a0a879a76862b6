// at::native::cpu_fallback, at::native::call_fallback_fn.
#pragma once
#include <ATen/Operators.h>
#include <ATen/core/stack.h>
#include "lamella/dispatch/cpu_fallback.h"

namespace at::native {
inline void cpu_fallback(const OperatorHandle& op, Stack* stack, bool error_on_views = false,
                         DispatchKey on = DispatchKey::CPU) {
  static_cast<void>(error_on_views);
  LAMELLA_CHECK(on == DispatchKey::CPU, op.operator_name().name,
                ": expected a fallback on CPU, got another key");
  op.run_on_stack(stack, [&](const lamella_value* arguments, lamella_value* returns) {
    return lamella_cpu_fallback(nullptr, op.impl(), 0, arguments, returns);
  });
}
// call_fallback_fn<&my_fallback, ATEN_OP(relu)>::call(self): my_fallback is a function of an
// operator and a stack.
template <auto fallback, class Op>
struct call_fallback_fn {
  template <class... A>
  static auto call(A&&... arguments) -> decltype(Op::call(std::forward<A>(arguments)...)) {
    return lamella::detail::FallbackCall<typename Op::schema>::call_with(
        &boxed, Op::handle().impl(), std::forward<A>(arguments)...);
  }

 private:
  static lamella_status boxed(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                              const lamella_value* arguments, lamella_value* returns) {
    return lamella::detail::call_boxed_function(fallback, op, keys, arguments, returns);
  }
};
}  // namespace at::native
