// Built-in kernels: those of keys without a registered kernel, and that of a thread's first call.
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/reclaim.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

lamella_status call_below(const lamella_operator* op, uint64_t keys, const lamella_value* arguments,
                          lamella_value* returns) {
  const lamella_kernel* kernel = abi::kernel_of(op, keys);
  return kernel->boxed(kernel, op, keys, arguments, returns);
}

void clear_returns(const lamella_operator* op, lamella_value* returns) {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = abi::box_none();
}

lamella_status run_missing(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                           const lamella_value* arguments, lamella_value* returns) {
  clear_returns(op, returns);
  try {
    return detail::fail(LAMELLA_NOT_IMPLEMENTED, missing_kernel_report(op, keys, arguments));
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

lamella_status run_undefined(const lamella_kernel*, const lamella_operator* op, uint64_t,
                             const lamella_value*, lamella_value* returns) {
  clear_returns(op, returns);
  try {
    Registry::get().find(op->name, op->overload);
    return detail::fail(
        LAMELLA_ERROR,
        entry_of(op)->full_name() + ": was defined anew with another signature; look it up again");
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

lamella_status run_fallthrough(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                               const lamella_value* arguments, lamella_value* returns) {
  uint64_t highest = uint64_t{1} << (63 - __builtin_clzll(keys | 1));
  return call_below(op, keys & ~highest, arguments, returns);
}

lamella_status run_thread_init(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                               const lamella_value* arguments, lamella_value* returns) {
  constexpr uint64_t bit = detail::functionality_bit(detail::Functionality::ThreadInit);
  reclaim::register_thread();
  lamella_thread.included &= ~bit;
  lamella_thread.included |= keys_of_new_threads.load(std::memory_order_relaxed);
  return call_below(op, keys & ~bit, arguments, returns);
}

lamella_status run_ambiguous(const lamella_kernel*, const lamella_operator* op, uint64_t,
                             const lamella_value*, lamella_value* returns) {
  clear_returns(op, returns);
  return detail::fail(
      LAMELLA_NOT_IMPLEMENTED,
      std::string(op->name) +
          ": has both kernels for single backends and a CompositeImplicitAutograd one, so "
          "what AutogradOther should do is not known; register an autograd kernel for it");
}

constexpr lamella_kernel kMissing{nullptr, &run_missing, nullptr};
constexpr lamella_kernel kUndefinedOperator{nullptr, &run_undefined, nullptr};
constexpr lamella_kernel kFallthrough{nullptr, &run_fallthrough, nullptr};
constexpr lamella_kernel kThreadInit{nullptr, &run_thread_init, nullptr};
constexpr lamella_kernel kAmbiguous{nullptr, &run_ambiguous, nullptr};

}  // namespace

std::atomic<uint64_t> keys_of_new_threads{0};

const lamella_kernel* missing_kernel() { return &kMissing; }
const lamella_kernel* undefined_kernel() { return &kUndefinedOperator; }
const lamella_kernel* fallthrough_kernel() { return &kFallthrough; }
const lamella_kernel* thread_init_kernel() { return &kThreadInit; }
const lamella_kernel* ambiguous_kernel() { return &kAmbiguous; }

}  // namespace lamella
