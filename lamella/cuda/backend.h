// What the families of operators of the devices "cuda" register with.
#pragma once
#include "lamella/backend.h"
#include "lamella/lamella.h"

namespace lamella::cuda {

// The fallback on the CPU, which counts its calls by operator.
lamella_status counting_fallback(const lamella_kernel* kernel, const lamella_operator* op,
                                 uint64_t key_set, const lamella_value* arguments,
                                 lamella_value* returns) noexcept;
void count_fallback(const std::string& op);
// "aten::add.Tensor 3", a line for each operator that ran on the CPU.
std::string fallback_lines();
void reset_fallbacks();
// The fallback from a typed kernel, counted as well: counted_fallback<ops::zero_>(self).
template <class Op, class... A>
auto counted_fallback(A&&... arguments) -> decltype(Op::call(std::forward<A>(arguments)...)) {
  return lamella::detail::FallbackCall<typename Op::schema>::call_with(
      &counting_fallback, Op::handle().impl(), std::forward<A>(arguments)...);
}

// Runs an operator's kernel of the CPU on tensors of the device.
lamella_status call_kernel_of_cpu(const lamella_operator* op, const lamella_value* arguments,
                                  lamella_value* returns);

// Calls f with each of the words, which end with a space.
template <class F>
void each_word(std::string_view words, const F& f) {
  for (; !words.empty(); words.remove_prefix(words.find(' ') + 1)) {
    f(std::string(words.substr(0, words.find(' '))));
  }
}

}  // namespace lamella::cuda
