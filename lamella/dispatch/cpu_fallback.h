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
// A boxed call on the end of a stack: takes the arguments, leaves the returns.
template <class F>
void run_on_stack(const lamella_operator* op, Stack* stack, F&& call) {
  size_t taken = op->argument_count;
  LAMELLA_CHECK(stack->size() >= taken, op->name, ": expected ", taken,
                " arguments on the stack, got ", stack->size());
  std::vector<lamella_value> returns(op->return_count + 1);
  const IValue* first = stack->data() + (stack->size() - taken);
  check(call(reinterpret_cast<const lamella_value*>(first), returns.data()));
  drop(stack, taken);
  for (uint32_t i = 0; i < op->return_count; ++i) stack->push_back(IValue::adopt(returns[i]));
}
}  // namespace detail

// The same from a typed kernel: call_cpu_fallback<ops::add_Tensor>(self, other, alpha).
template <class Op, class... A>
auto call_cpu_fallback(A&&... arguments) -> decltype(Op::call(std::forward<A>(arguments)...)) {
  return detail::FallbackCall<typename Op::schema>::call_with(
      &lamella_cpu_fallback, Op::handle().impl(), std::forward<A>(arguments)...);
}

// PyTorch's spellings of both.
namespace native {
inline void cpu_fallback(const OperatorHandle& op, Stack* stack, bool error_on_views = false,
                         DispatchKey on = DispatchKey::CPU) {
  static_cast<void>(error_on_views);
  LAMELLA_CHECK(on == DispatchKey::CPU, op.operator_name().name,
                ": expected a fallback on CPU, got another key");
  lamella::detail::run_on_stack(
      op.impl(), stack, [&](const lamella_value* arguments, lamella_value* returns) {
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
}  // namespace native

}  // namespace lamella
