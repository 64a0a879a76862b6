// Selection by masks: masked_fill, masked_select, masked_scatter, nonzero.
#include <algorithm>

#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/fill.h"
#include "lamella/kernels/cpu/selecting.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::native {

namespace {
void check_mask(const char* op, const Tensor& mask) {
  LAMELLA_CHECK(mask.scalar_type() == kBool, op, ": expected 'mask' to be bool, got ",
                mask.scalar_type());
}
}  // namespace

Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask("masked_fill_", mask);
  LAMELLA_CHECK(!value.isComplex() || self.is_complex(),
                "masked_fill_: expected 'value' to be real for a tensor of ", self.scalar_type(),
                ", got ", value);
  LAMELLA_CHECK(is_expandable(mask.sizes(), self.sizes()),
                "masked_fill_: expected 'mask' to be broadcastable to ", self.sizes(), ", got ",
                mask.sizes());
  warn_of_shared_elements("masked_fill_", self);
  check_no_partial_overlap("masked_fill_", "self", self, "mask", mask);
  if (self.is_meta() || self.numel() == 0) return self;
  Tensor number = lamella::scalar_tensor(value, self.scalar_type());
  StridedLoop<2> loop(self.sizes());
  loop.operand(0, self.data_ptr(), self.strides(), self.itemsize());
  loop.operand(1, mask.data_ptr(), broadcast_strides(mask.sizes(), mask.strides(), self.sizes()),
               1);
  loop.plan();
  auto bytes = static_cast<int64_t>(self.itemsize());
  const auto* fill = static_cast<const char*>(number.const_data_ptr());
  const SelectingElements& selecting = selecting_elements_on(kCPU, bytes);
  loop.parallel([&](char* const* p, const int64_t* s, int64_t n) {
    if (s[1] != 0) {
      selecting.fill(p[0], s[0], reinterpret_cast<const uint8_t*>(p[1]), s[1], n, fill);
    } else if (*p[1] != 0) {
      move_elements(fill, 0, p[0], s[0], n, bytes);
    }
  });
  return self;
}
Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "masked_fill_: expected 'value' to have no dimensions, got ",
                value.sizes());
  if (value.is_meta() || self.is_meta()) return masked_fill_(self, mask, Scalar(0));
  return self.masked_fill_(mask, number_for(self.scalar_type(), value));
}
namespace {
Tensor broadcast_clone(const Tensor& self, const Tensor& mask, const char* op) {
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes(), op, "mask");
  bool same = self.sizes().equals(shape);
  return same ? self.clone(MemoryFormat::Contiguous)
              : self.expand(shape).clone(MemoryFormat::Contiguous);
}
}  // namespace
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  Tensor result = broadcast_clone(self, mask, "masked_fill");
  result.masked_fill_(mask, value);
  return result;
}
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  Tensor result = broadcast_clone(self, mask, "masked_fill");
  result.masked_fill_(mask, value);
  return result;
}

namespace {
int64_t count_set(const Tensor& mask) {
  return selecting_on(kCPU).count(static_cast<const uint8_t*>(mask.const_data_ptr()), mask.numel());
}
}  // namespace

Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  check_mask("masked_select", mask);
  LAMELLA_CHECK(out.scalar_type() == self.scalar_type(), "masked_select: expected 'out' to be ",
                self.scalar_type(), ", got ", out.scalar_type());
  check_no_internal_overlap("masked_select", "out", out);
  check_no_overlap("masked_select", "out", out, "self", self);
  check_no_overlap("masked_select", "out", out, "mask", mask);
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes(), "masked_select", "mask");
  if (may_share_memory(out, self) || may_share_memory(out, mask)) {
    Tensor result = masked_select(self, mask);
    resize_output(out, result.sizes());
    return out.copy_(result);
  }
  Tensor dense = mask.expand(shape).contiguous();
  Tensor source = self.expand(shape);
  resize_output(out, {count_set(dense)});
  if (out.numel() == 0) return out;
  StridedLoop<2> loop(shape);
  loop.operand(0, source.data_ptr(), source.strides(), source.itemsize());
  loop.operand(1, dense.data_ptr(), dense.strides(), 1);
  loop.plan(true);
  // For an output with gaps, the selected elements are first written to contiguous memory.
  const bool dense_out = out.is_contiguous();
  Tensor found = dense_out ? out : new_tensor(out.sizes(), out.scalar_type(), kCPU);
  auto* to = static_cast<char*>(found.data_ptr());
  const char* end = to + found.nbytes();
  auto bytes = static_cast<int64_t>(self.itemsize());
  const SelectingElements& selecting = selecting_elements_on(kCPU, bytes);
  loop.serial([&](char* const* p, const int64_t* s, int64_t n) {
    const auto* flags = reinterpret_cast<const uint8_t*>(p[1]);
    to += bytes * selecting.select(p[0], s[0], flags, n, to, end);
  });
  if (!dense_out) out.copy_(found);
  return out;
}
Tensor masked_select(const Tensor& self, const Tensor& mask) {
  Tensor out = new_tensor({0}, self.scalar_type(), self.device());
  masked_select_out(self, mask, out);
  return out;
}

Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_mask("masked_scatter_", mask);
  LAMELLA_CHECK(source.scalar_type() == self.scalar_type(),
                "masked_scatter_: expected 'source' to be ", self.scalar_type(), ", got ",
                source.scalar_type());
  LAMELLA_CHECK(is_expandable(mask.sizes(), self.sizes()),
                "masked_scatter_: expected 'mask' to be broadcastable to ", self.sizes(), ", got ",
                mask.sizes());
  check_no_internal_overlap("masked_scatter_", "self", self);
  if (self.is_meta() || self.numel() == 0) return self;
  Tensor dense = mask.expand(self.sizes()).contiguous();
  if (may_share_memory(self, mask)) dense = dense.clone();
  Tensor values =
      may_share_memory(self, source) ? source.clone(MemoryFormat::Contiguous) : source.contiguous();
  int64_t needed = count_set(dense);
  LAMELLA_CHECK(values.numel() >= needed, "masked_scatter_: expected 'source' to have at least ",
                needed, " elements, got ", values.numel());
  StridedLoop<2> loop(self.sizes());
  loop.operand(0, self.data_ptr(), self.strides(), self.itemsize());
  loop.operand(1, dense.data_ptr(), dense.strides(), 1);
  loop.plan(true);
  auto bytes = static_cast<int64_t>(self.itemsize());
  const auto* from = static_cast<const char*>(values.const_data_ptr());
  const char* end = from + needed * bytes;
  const SelectingElements& selecting = selecting_elements_on(kCPU, bytes);
  loop.serial([&](char* const* p, const int64_t* s, int64_t n) {
    const auto* flags = reinterpret_cast<const uint8_t*>(p[1]);
    from += bytes * selecting.spread(p[0], s[0], flags, n, from, end);
  });
  return self;
}
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  Tensor result = broadcast_clone(self, mask, "masked_scatter");
  result.masked_scatter_(mask, source);
  return result;
}

Tensor& nonzero_out(const Tensor& self, Tensor& out) {
  LAMELLA_CHECK(out.scalar_type() == kLong, "nonzero: expected 'out' to be int64, got ",
                out.scalar_type());
  bool direct = self.scalar_type() == kBool && !may_share_memory(self, out);
  Tensor mask = direct ? self.contiguous() : self.ne(0).contiguous();
  Dims shape(self.sizes());
  int64_t found = count_set(mask);
  auto ndim = shape.size();
  if (!out.sizes().equals({found, shape.ndim()})) {
    // One column after the other: each is then a contiguous list of indices.
    resize_tensor_strided(TensorImpl::of(out), {found, shape.ndim()}, {1, found > 0 ? found : 1});
  }
  if (out.numel() == 0) return out;
  // The columns of the result are written as contiguous lists.
  const bool columns = out.strides()[0] == 1;
  Tensor lists = columns ? out : new_strided(out.sizes(), {1, found}, kLong, kCPU);
  auto* to = lists.mutable_data_ptr<int64_t>();
  const int64_t* end = to + found;
  const int64_t step = lists.strides()[1];
  const auto* flags = static_cast<const uint8_t*>(mask.const_data_ptr());
  Dims at(ndim, 0);
  auto last = static_cast<int64_t>(ndim) - 1;
  int64_t rows = shape[ndim - 1];
  for (int64_t base = 0, n = mask.numel(); base < n; base += rows) {
    const int64_t* line_end = end + last * step;
    int64_t here = selecting_on(kCPU).positions(flags + base, rows, to + last * step, line_end);
    for (int64_t d = 0; d < last; ++d) {
      std::fill_n(to + d * step, here, at[static_cast<size_t>(d)]);
    }
    to += here;
    for (size_t d = ndim - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  if (!columns) out.copy_(lists);
  return out;
}
Tensor nonzero(const Tensor& self) {
  Tensor out = new_tensor({0}, kLong, self.device());
  nonzero_out(self, out);
  return out;
}
std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  if (self.dim() == 0) return lamella::nonzero(self.unsqueeze(0)).unbind(1);
  return lamella::nonzero(self).unbind(1);
}
Tensor argwhere(const Tensor& self) { return lamella::nonzero(self); }

}  // namespace lamella::native
