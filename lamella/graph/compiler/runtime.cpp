// Functions that machine code calls. None of them throws: an error is kept until the code returned.
#include "lamella/graph/compiler/runtime.h"

#include <exception>
#include <utility>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/machine_code.h"

namespace lamella::hlo::compiler {
namespace {

thread_local std::exception_ptr pending;

template <class F>
int32_t keeping_errors(F&& work) {
  try {
    work();
    return 0;
  } catch (...) {
    pending = std::current_exception();
    return 1;
  }
}

int32_t dot(const native::CodeProduct* p, const void* a, const void* b, void* c,
            lamella_storage* storage, const void* d) {
  return keeping_errors([&] { native::code_product(*p, a, b, c, storage, d); });
}

int32_t attention(const native::CodeAttention* p, const native::CodeAttentionData* data) {
  return keeping_errors([&] { native::code_attention(*p, *data); });
}

int32_t interrupted(int64_t steps) {
  return keeping_errors([&] { count_steps(steps); });
}

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void throw_pending() { std::rethrow_exception(std::exchange(pending, nullptr)); }

const RuntimeSymbol* runtime_symbols(int* count) {
  static const RuntimeSymbol symbols[] = {{"lamella_parallel", address(native::code_parallel)},
                                          {"lamella_dot", address(dot)},
                                          {"lamella_attention", address(attention)},
                                          {"lamella_interrupted", address(interrupted)}};
  *count = 4;
  return symbols;
}

}  // namespace lamella::hlo::compiler
