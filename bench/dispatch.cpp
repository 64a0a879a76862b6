// The dispatch rows: the cost of a call over a direct call of the same function, in nanoseconds.
// `dispatch count ROW N` only makes N calls of one row, for an instruction counter.
#include <cstdlib>
#include <cstring>

#include "bench/timing.h"
#include "lamella/dispatch/library.h"

using namespace lamella;
using bench::median_ns;
using bench::report;
using T = TensorBase;

namespace {

T tensor_of(std::initializer_list<int64_t> sizes) {
  lamella_tensor* tensor = nullptr;
  detail::check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.begin(),
                                     static_cast<uint8_t>(ScalarType::Float), 0, -1, &tensor));
  return T::adopt(tensor);
}

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

struct Rows {
  T a = tensor_of({1}), b = tensor_of({1});
  using Noop = int64_t(const T&, const T&);
  TypedOperatorHandle<Noop> op = find("bench::noop");
  TypedOperatorHandle<Noop> layered = find("bench::layered");
  TypedOperatorHandle<Noop> boxed_only = find("bench::boxed");
  lamella_value arguments[2] = {IValue(a).unsafe_release(), IValue(b).unsafe_release()};
  int64_t sum = 0;

  Rows() = default;
  Rows(const Rows&) = delete;
  ~Rows() {
    for (lamella_value& value : arguments) lamella_value_release(&value);
  }
  static TypedOperatorHandle<Noop> find(const char* name) {
    return Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Noop>();
  }
  void direct() { sum += noop(a, b); }
  void typed() { sum += op.call(a, b); }
  void two_layers() { sum += layered.call(a, b); }
  void into_boxed() { sum += boxed_only.call(a, b); }
  void boxed() {
    lamella_value result;
    op.callBoxed(ArgumentSpan(arguments, 2), ReturnSpan(&result, 1));
    sum += result.as.i;
  }
};

int count(const char* row, long calls) {
  Rows rows;
  auto repeat = [&](auto&& body) {
    for (long i = 0; i < calls; ++i) body();
    return 0;
  };
  if (!std::strcmp(row, "direct")) return repeat([&] { rows.direct(); });
  if (!std::strcmp(row, "typed")) return repeat([&] { rows.typed(); });
  if (!std::strcmp(row, "boxed")) return repeat([&] { rows.boxed(); });
  if (!std::strcmp(row, "into_boxed")) return repeat([&] { rows.into_boxed(); });
  if (!std::strcmp(row, "layer")) return repeat([&] { rows.two_layers(); });
  std::fprintf(stderr, "unknown row '%s'\n", row);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && !std::strcmp(argv[1], "count")) return count(argv[2], std::atol(argv[3]));
  Rows rows;
  double direct = median_ns([&] { rows.direct(); });
  double typed = median_ns([&] { rows.typed(); });
  double two_layers = median_ns([&] { rows.two_layers(); });
  double boxed = median_ns([&] { rows.boxed(); });
  double into_boxed = median_ns([&] { rows.into_boxed(); });
  double not_applying;
  {
    // A layer that is on for this thread, and for which the operator has no kernel.
    IncludeDispatchKeyGuard guard(DispatchKey::Tracer);
    not_applying = median_ns([&] { rows.typed(); });
  }
  double found = median_ns([&] {
    rows.sum += Dispatcher::singleton().findSchema({"bench::noop", ""})->impl()->argument_count;
  });
  report("direct call", direct);
  report("typed call over direct", typed - direct);
  report("boxed call over direct", boxed - direct);
  report("typed call of a boxed-only kernel over direct", into_boxed - direct);
  report("one more layer that redispatches", two_layers - typed);
  report("a layer that does not apply", not_applying - typed);
  report("find by name", found);
  return 0;
}
