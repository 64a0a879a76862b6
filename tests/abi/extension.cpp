// A separately built library of operators, as a user would write it against the public headers.
#include "lamella/core/visit_dtype.h"
#include "lamella/dispatch/library.h"

using lamella::IntArrayRef;
using lamella::Scalar;
using lamella::ScalarType;
using lamella::TensorBase;

namespace {

TensorBase empty_like(const TensorBase& self) {
  lamella_tensor* result = nullptr;
  lamella::detail::check(lamella_tensor_empty(static_cast<int32_t>(self.dim()), self.sizes().data(),
                                              static_cast<uint8_t>(self.scalar_type()),
                                              static_cast<uint8_t>(self.device().type()), -1,
                                              &result));
  return TensorBase::adopt(result);
}

TensorBase scale(const TensorBase& self, const Scalar& factor) {
  LAMELLA_CHECK(self.is_contiguous(), "scale: expected 'self' to be contiguous");
  TensorBase result = empty_like(self);
  lamella::visit_numbers(self.scalar_type(), "scale", [&](auto tag) {
    using T = lamella::type_of<decltype(tag)>;
    const T by = factor.to<T>();
    const T* from = self.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t i = 0; i < self.numel(); ++i) to[i] = static_cast<T>(from[i] * by);
  });
  return result;
}

int64_t total(IntArrayRef numbers, std::optional<int64_t> start, std::string_view unit) {
  int64_t sum = start.value_or(0) + static_cast<int64_t>(unit.size());
  for (int64_t number : numbers) sum += number;
  return sum;
}

std::tuple<TensorBase, TensorBase> both(const TensorBase& a, const TensorBase& b) { return {b, a}; }

void boxed(const lamella::OperatorHandle& op, lamella::DispatchKeySet, lamella::Stack* stack) {
  int64_t arguments = static_cast<int64_t>(op.schema().arguments().size());
  lamella::drop(stack, static_cast<size_t>(arguments));
  lamella::push(stack, arguments);
}

}  // namespace

LAMELLA_LIBRARY(abi_extension, m) {
  m.def("scale(Tensor self, Scalar factor) -> Tensor");
  m.def("total(int[] numbers, *, int? start=None, str unit='') -> int", &total);
  m.def("both(Tensor a, Tensor b) -> (Tensor, Tensor)");
  m.def("count(Tensor a, int b, float c) -> int");
}
LAMELLA_LIBRARY_IMPL(abi_extension, CPU, m) {
  m.impl("scale", LAMELLA_FN(scale));
  m.impl("both", &both);
  m.impl("count", lamella::CppFunction::makeFromBoxedFunction<&boxed>());
}
