// The dispatch rows: what a call costs over a direct call of the same function, in nanoseconds.
// Prints one JSON object a line: {"row", "ns"}. Medians over repeats of hot loops, one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "lamella/dispatch/library.h"

using namespace lamella;
using T = TensorBase;

namespace {

T tensor_of(std::initializer_list<int64_t> sizes) {
  lamella_tensor* tensor = nullptr;
  detail::check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.begin(),
                                     static_cast<uint8_t>(ScalarType::Float), 0, -1, &tensor));
  return T::adopt(tensor);
}

template <class F>
double median_ns(F&& body) {
  constexpr int kCalls = 20000, kRepeats = 101;
  std::vector<double> times;
  for (int r = 0; r < kRepeats; ++r) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) body();
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / kCalls);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

void report(const char* row, double ns) { std::printf("{\"row\": \"%s\", \"ns\": %.3f}\n", row, ns); }

// No operation: the count of its calls keeps it from being optimised away.
int64_t calls = 0;
__attribute__((noinline)) int64_t noop(const T& self, const T& other) {
  asm volatile("" : "+r"(calls));
  return self.numel();
}
int64_t noop_kernel(const T& self, const T& other) { return noop(self, other); }
int64_t noop_layer(DispatchKeySet keys, const T& self, const T& other) {
  static const auto op = Dispatcher::singleton()
                             .findSchemaOrThrow("bench::layered", "")
                             .typed<int64_t(const T&, const T&)>();
  return op.redispatch(keys & after_autograd_keyset, self, other);
}
void noop_boxed(const OperatorHandle&, DispatchKeySet, ArgumentSpan arguments, ReturnSpan returns) {
  asm volatile("" : "+r"(calls));
  returns[0] = arguments[0].value().as.tensor->numel;
}

LAMELLA_LIBRARY(bench, m) {
  m.def("noop(Tensor self, Tensor other) -> int");
  m.def("layered(Tensor self, Tensor other) -> int");
  m.def("boxed(Tensor self, Tensor other) -> int");
}
LAMELLA_LIBRARY_IMPL(bench, CPU, m) {
  m.impl("noop", LAMELLA_FN(noop_kernel));
  m.impl("layered", LAMELLA_FN(noop_kernel));
  m.impl("boxed", CppFunction::makeFromBoxedFunction<&noop_boxed>());
}
LAMELLA_LIBRARY_IMPL(bench, Autograd, m) { m.impl("layered", LAMELLA_FN(noop_layer)); }

}  // namespace

int main() {
  T a = tensor_of({1}), b = tensor_of({1});
  using Noop = int64_t(const T&, const T&);
  auto& dispatcher = Dispatcher::singleton();
  auto op = dispatcher.findSchemaOrThrow("bench::noop", "").typed<Noop>();
  auto layered = dispatcher.findSchemaOrThrow("bench::layered", "").typed<Noop>();
  auto boxed_only = dispatcher.findSchemaOrThrow("bench::boxed", "").typed<Noop>();
  int64_t sum = 0;
  double direct = median_ns([&] { sum += noop(a, b); });
  double typed = median_ns([&] { sum += op.call(a, b); });
  double two_layers = median_ns([&] { sum += layered.call(a, b); });
  double not_applying;
  {
    // Every tensor carries autograd keys; this operator has no kernel there.
    IncludeDispatchKeyGuard guard(DispatchKey::Tracer);
    not_applying = median_ns([&] { sum += op.call(a, b); });
  }
  lamella_value arguments[2] = {IValue(a).unsafe_release(), IValue(b).unsafe_release()};
  lamella_value result[1];
  double boxed = median_ns([&] {
    lamella_call_boxed(op.impl(), arguments, 2, result, 1);
    sum += result[0].as.i;
  });
  double into_boxed = median_ns([&] { sum += boxed_only.call(a, b); });
  double found = median_ns([&] {
    sum += dispatcher.findSchema({"bench::noop", ""})->impl()->argument_count;
  });
  for (lamella_value& value : arguments) lamella_value_release(&value);
  report("direct call", direct);
  report("typed call over a direct one", typed - direct);
  report("boxed call over a direct one", boxed - direct);
  report("typed call into a boxed-only kernel over a direct one", into_boxed - direct);
  report("one more layer that redispatches", two_layers - typed);
  report("a layer that does not apply", not_applying - typed);
  report("find by name", found);
  return sum == 42 ? 1 : 0;
}
