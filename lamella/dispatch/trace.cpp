// The dispatch trace: each kernel entered, printed to stderr, indented by nesting.
//
// Note [A trace that is free when off]
//   Tracing puts a small kernel in front of every kernel in the slots, and removes it when tracing
//   ends. A call itself does not test whether tracing is on.
#include <cstdio>
#include <vector>

#include "lamella/dispatch/slot_filler.h"

namespace lamella {
namespace {

struct Frame {
  const lamella_operator* op;
  uint64_t keys;
};
thread_local std::vector<Frame> frames;

lamella_status run_traced(const lamella_kernel* kernel, const lamella_operator* op, uint64_t keys,
                          const lamella_value* arguments, lamella_value* returns) {
  const lamella_kernel* target = static_cast<const lamella_kernel*>(kernel->context);
  const OperatorEntry* entry = entry_of(op);
  // The same operator again with fewer keys, from inside its own kernel: a redispatch.
  bool again = !frames.empty() && frames.back().op == op && keys < frames.back().keys;
  std::fprintf(stderr, "%*s[%s] op=[%s], key=[%s]\n", static_cast<int>(frames.size()) + 1, " ",
               again ? "redispatch" : "call", entry->full_name().c_str(),
               dispatch_key_name(static_cast<DispatchKey>(detail::slot_of(keys))).c_str());
  frames.push_back({op, keys});
  lamella_status status = target->boxed(target, op, keys, arguments, returns);
  frames.pop_back();
  return status;
}

}  // namespace

lamella_kernel* make_trace_kernel(const lamella_kernel* target) {
  return new lamella_kernel{nullptr, &run_traced, const_cast<lamella_kernel*>(target)};
}

}  // namespace lamella
