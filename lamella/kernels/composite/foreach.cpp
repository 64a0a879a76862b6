// The foreach operators, which call one operator for each tensor of a list.
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
void check_lists(const char* op, TensorList self, const char* name, TensorList other) {
  LAMELLA_CHECK(self.size() == other.size(), op, ": expected '", name, "' to have ", self.size(),
                " tensors, one for each in 'self', got ", other.size());
}
// Calls f for each tensor of the list. Tensors are handles, so f can write through copies.
template <class F>
void each(TensorList self, F&& f) {
  for (size_t i = 0; i < self.size(); ++i) {
    Tensor tensor = self[i];
    f(tensor, i);
  }
}
}  // namespace

void _foreach_zero_(TensorList self) {
  each(self, [](Tensor& t, size_t) { t.zero_(); });
}
void _foreach_neg_(TensorList self) {
  each(self, [](Tensor& t, size_t) { t.neg_(); });
}
void _foreach_sqrt_(TensorList self) {
  each(self, [](Tensor& t, size_t) { t.sqrt_(); });
}
std::vector<Tensor> _foreach_sqrt(TensorList self) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : self) results.push_back(tensor.sqrt());
  return results;
}
void _foreach_add_(TensorList self, const Scalar& scalar) {
  each(self, [&](Tensor& t, size_t) { t.add_(scalar); });
}
void _foreach_add_(TensorList self, TensorList other, const Scalar& alpha) {
  check_lists("_foreach_add_", self, "other", other);
  each(self, [&](Tensor& t, size_t i) { t.add_(other[i], alpha); });
}
void _foreach_sub_(TensorList self, TensorList other, const Scalar& alpha) {
  check_lists("_foreach_sub_", self, "other", other);
  each(self, [&](Tensor& t, size_t i) { t.sub_(other[i], alpha); });
}
void _foreach_mul_(TensorList self, const Scalar& scalar) {
  each(self, [&](Tensor& t, size_t) { t.mul_(scalar); });
}
void _foreach_mul_(TensorList self, TensorList other) {
  check_lists("_foreach_mul_", self, "other", other);
  each(self, [&](Tensor& t, size_t i) { t.mul_(other[i]); });
}
void _foreach_mul_(TensorList self, const Tensor& other) {
  each(self, [&](Tensor& t, size_t) { t.mul_(other); });
}
void _foreach_div_(TensorList self, const Scalar& scalar) {
  each(self, [&](Tensor& t, size_t) { t.div_(scalar); });
}
void _foreach_div_(TensorList self, TensorList other) {
  check_lists("_foreach_div_", self, "other", other);
  each(self, [&](Tensor& t, size_t i) { t.div_(other[i]); });
}
void _foreach_maximum_(TensorList self, TensorList other) {
  check_lists("_foreach_maximum_", self, "other", other);
  each(self, [&](Tensor& t, size_t i) { t.copy_(lamella::maximum(t, other[i])); });
}
void _foreach_addcmul_(TensorList self, TensorList tensor1, TensorList tensor2,
                       const Scalar& value) {
  check_lists("_foreach_addcmul_", self, "tensor1", tensor1);
  check_lists("_foreach_addcmul_", self, "tensor2", tensor2);
  each(self, [&](Tensor& t, size_t i) { t.addcmul_(tensor1[i], tensor2[i], value); });
}
void _foreach_addcdiv_(TensorList self, TensorList tensor1, TensorList tensor2,
                       const Scalar& value) {
  check_lists("_foreach_addcdiv_", self, "tensor1", tensor1);
  check_lists("_foreach_addcdiv_", self, "tensor2", tensor2);
  each(self, [&](Tensor& t, size_t i) { t.addcdiv_(tensor1[i], tensor2[i], value); });
}
void _foreach_lerp_(TensorList self, TensorList tensors1, const Scalar& weight) {
  check_lists("_foreach_lerp_", self, "tensors1", tensors1);
  each(self, [&](Tensor& t, size_t i) { t.lerp_(tensors1[i], weight); });
}
void _foreach_copy_(TensorList self, TensorList src, bool non_blocking) {
  check_lists("_foreach_copy_", self, "src", src);
  each(self, [&](Tensor& t, size_t i) { t.copy_(src[i], non_blocking); });
}
std::vector<Tensor> _foreach_norm(TensorList self, const Scalar& ord,
                                  std::optional<ScalarType> dtype) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : self) {
    results.push_back(lamella::linalg_vector_norm(tensor, ord, std::nullopt, false, dtype));
  }
  return results;
}

}  // namespace lamella::native
