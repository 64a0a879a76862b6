// What machine code calls beside vector functions: threads, matrix products, interrupts.
#pragma once

namespace lamella::hlo::compiler {

struct RuntimeSymbol {
  const char* name;
  void* address;
};
// lamella_parallel(function, context, count, grain), lamella_dot(problem, a, b, c),
// lamella_interrupted(steps): whether the caller wants the run to stop. The last two return 1 where
// the code must return at once.
const RuntimeSymbol* runtime_symbols(int* count);
// Throws what one of them kept in this thread.
[[noreturn]] void throw_pending();

}  // namespace lamella::hlo::compiler
