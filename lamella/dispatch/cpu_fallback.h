// The fallback on the CPU, as a boxed kernel for a backend's key and for kernels that serve a part
// of an operator's cases:
//   LAMELLA_LIBRARY_IMPL(_, PrivateUse1, m) {
//     m.fallback(CppFunction::makeFromBoxedFunction<&cpu_fallback>());
//   }
#pragma once
#include "lamella/abi/backend.h"
#include "lamella/dispatch/kernel_function.h"

namespace lamella {

// The key that kernels of a type of device are registered for: PrivateUse1, ...
inline DispatchKey dispatch_key_of(DeviceType type) {
  return DispatchKeySet::from_raw_repr(default_key_set(type, true)).highestPriorityTypeId();
}

// Runs an operator on the CPU with copies of its arguments' memory; see lamella_cpu_fallback().
inline void cpu_fallback(const OperatorHandle& op, DispatchKeySet keys, ArgumentSpan arguments,
                         ReturnSpan returns) {
  detail::check(
      lamella_cpu_fallback(nullptr, op.impl(), keys.raw_repr(), arguments.data(), returns.data()));
}

namespace detail {
template <class Signature>
struct FallbackCall;
template <class R, class... A>
struct FallbackCall<R(A...)> {
  static R call_with(lamella_boxed_function boxed, const lamella_operator* op, A... arguments) {
    using Call = abi::Call<R(A...)>;
    const lamella_kernel kernel{nullptr, boxed, nullptr};
    typename Call::Forms forms;
    check(Call::invoke_boxed(&kernel, op, 0, abi::ParamOf<A>::pack(arguments)..., &forms));
    return Call::Res::template load<typename Call::Refs>(forms, arguments...);
  }
};
}  // namespace detail

// The same from a typed kernel: call_cpu_fallback<ops::add_Tensor>(self, other, alpha).
template <class Op, class... A>
auto call_cpu_fallback(A&&... arguments) -> decltype(Op::call(std::forward<A>(arguments)...)) {
  return detail::FallbackCall<typename Op::schema>::call_with(
      &lamella_cpu_fallback, Op::handle().impl(), std::forward<A>(arguments)...);
}

}  // namespace lamella
