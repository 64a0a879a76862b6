// Views of the same memory under another element type: view.dtype, real and complex views.
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  if (self.scalar_type() == dtype) {
    return view_of(self, self.sizes(), self.strides(), self.storage_offset());
  }
  LAMELLA_CHECK_TYPE(is_supported(dtype), "view: expected a 'dtype' that tensors can have, got ",
                     dtype);
  LAMELLA_CHECK(!self.is_conj() && !self.is_neg(),
                "view: expected 'self' without a lazy conjugation or negation to see it as ",
                dtype);
  auto from = static_cast<int64_t>(self.itemsize());
  auto to = static_cast<int64_t>(element_size(dtype));
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from != to) {
    LAMELLA_CHECK(self.dim() > 0, "view: expected 'self' to have at least 1 dimension to see ",
                  self.scalar_type(), " as ", dtype, ", got a tensor with 0");
    LAMELLA_CHECK(strides.back() == 1, "view: expected the last stride of 'self' to be 1 to see ",
                  self.scalar_type(), " as ", dtype, ", got ", self.strides());
  }
  if (from > to) {
    int64_t ratio = from / to;
    for (int64_t& s : strides) s *= ratio;
    strides.back() = 1;
    sizes.back() *= ratio;
    offset *= ratio;
  } else if (from < to) {
    int64_t ratio = to / from;
    LAMELLA_CHECK(sizes.back() % ratio == 0,
                  "view: expected the last size of 'self' to be "
                  "divisible by ",
                  ratio, " to see ", self.scalar_type(), " as ", dtype, ", got ", self.sizes());
    LAMELLA_CHECK(offset % ratio == 0,
                  "view: expected the storage offset of 'self' to be "
                  "divisible by ",
                  ratio, " to see ", self.scalar_type(), " as ", dtype, ", got ", offset);
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      LAMELLA_CHECK(strides[d] % ratio == 0 || sizes[d] == 1,
                    "view: expected the strides of 'self' to be divisible by ", ratio, " to see ",
                    self.scalar_type(), " as ", dtype, ", got ", self.strides());
      strides[d] /= ratio;
    }
    sizes.back() /= ratio;
    offset /= ratio;
  }
  return Tensor(make_view_as(self, sizes, strides, offset, dtype));
}

Tensor view_as_real(const Tensor& self) {
  LAMELLA_CHECK(self.is_complex(), "view_as_real: expected 'self' to be complex, got ",
                self.scalar_type());
  LAMELLA_CHECK(!self.is_conj(), "view_as_real: expected 'self' without a lazy conjugation; ",
                "resolve_conj makes it so");
  Dims sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return Tensor(make_view_as(self, sizes, strides, self.storage_offset() * 2,
                             to_real_type(self.scalar_type())));
}

Tensor view_as_complex(const Tensor& self) {
  ScalarType dtype = self.scalar_type();
  LAMELLA_CHECK(dtype == kFloat || dtype == kDouble || dtype == kHalf,
                "view_as_complex: expected 'self' to be float16, float32 or float64, got ", dtype);
  LAMELLA_CHECK(self.dim() > 0 && self.sizes()[static_cast<size_t>(self.dim() - 1)] == 2,
                "view_as_complex: expected the last size of 'self' to be 2, got ", self.sizes());
  Dims sizes(self.sizes()), strides(self.strides());
  LAMELLA_CHECK(strides.back() == 1,
                "view_as_complex: expected the last stride of 'self' to be 1, got ",
                self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (size_t d = 0; d < strides.size(); ++d) {
    LAMELLA_CHECK(strides[d] % 2 == 0 || sizes[d] == 1,
                  "view_as_complex: expected the strides of 'self' to be divisible by 2, got ",
                  self.strides());
    strides[d] /= 2;
  }
  LAMELLA_CHECK(self.storage_offset() % 2 == 0,
                "view_as_complex: expected the storage offset of 'self' to be divisible by 2, got ",
                self.storage_offset());
  return Tensor(
      make_view_as(self, sizes, strides, self.storage_offset() / 2, to_complex_type(dtype)));
}

// For a lazy conjugate, the parts are views of its memory, with the imaginary one lazily negated.
Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  return lamella::view_as_real(self.is_conj() ? lamella::_conj(self) : self).select(-1, 0);
}
Tensor imag(const Tensor& self) {
  LAMELLA_CHECK(self.is_complex(), "imag: expected 'self' to be complex, got ", self.scalar_type());
  if (!self.is_conj()) return lamella::view_as_real(self).select(-1, 1);
  return lamella::_neg_view(lamella::view_as_real(lamella::_conj(self)).select(-1, 1));
}

// Lazy conjugation and negation: Note [Lazy conjugates] in lamella/layers/conj/conj.h.
namespace {
Tensor toggled(const Tensor& self, uint32_t flag, uint64_t key) {
  Tensor view = view_of(self, self.sizes(), self.strides(), self.storage_offset());
  TensorImpl* impl = TensorImpl::of(view);
  impl->flags ^= flag;
  impl->key_set = (impl->flags & flag) != 0 ? impl->key_set | key : impl->key_set & ~key;
  return view;
}
}  // namespace

Tensor _conj(const Tensor& self) {
  LAMELLA_CHECK(self.is_complex(), "_conj: expected 'self' to be complex, got ",
                self.scalar_type());
  return toggled(self, LAMELLA_TENSOR_CONJ,
                 lamella::detail::functionality_bit(lamella::detail::Functionality::Conjugate));
}
Tensor _neg_view(const Tensor& self) {
  LAMELLA_CHECK(self.scalar_type() != ScalarType::Bool,
                "_neg_view: expected 'self' not to be of bool, which has no negative");
  return toggled(self, LAMELLA_TENSOR_NEG,
                 lamella::detail::functionality_bit(lamella::detail::Functionality::Negative));
}
Tensor conj(const Tensor& self) { return self.is_complex() ? lamella::_conj(self) : self; }
Tensor resolve_conj(const Tensor& self) { return self.is_conj() ? self.clone() : self; }
Tensor resolve_neg(const Tensor& self) { return self.is_neg() ? self.clone() : self; }

Tensor conj_physical(const Tensor& self) {
  // The sign of the imaginary part is the last bit of a word that holds both parts.
  if (self.scalar_type() == kComplexFloat && !self.is_conj() && !self.is_neg()) {
    const Tensor words = lamella::bitwise_xor(self.view(kLong), Scalar(INT64_MIN));
    return words.view(kComplexFloat);
  }
  Tensor result = self.clone();
  if (result.is_complex()) lamella::view_as_real(result).select(-1, 1).neg_();
  return result;
}

}  // namespace lamella::native
