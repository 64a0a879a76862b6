// sort and topk.
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/ordering.h"
#include "lamella/kernels/selecting.h"

namespace lamella {
namespace native {
namespace {

// The first k elements of each line of `self`, in order; outputs have size k there.
void order_lines(const char* op, const Tensor& self, int64_t dim, int64_t k, bool descending,
                 const Tensor& values, const Tensor& indices) {
  visit_real(signed_type(self.scalar_type()), op, [](auto) {});
  if (values.numel() == 0) return;
  Lines lines({&self, &values, &indices}, dim);
  int64_t bytes = self.element_size();
  auto* value = static_cast<char*>(values.data_ptr());
  auto* index = indices.mutable_data_ptr<int64_t>();
  for_each_line(lines, self, descending,
                [&](const Line& line, const int64_t* starts, OrderScratch& scratch) {
                  order_line(line, k,
                             {value + starts[1] * bytes, lines.stride(1) * bytes, index + starts[2],
                              lines.stride(2)},
                             scratch);
                });
}

}  // namespace
}  // namespace native

namespace meta {
LAMELLA_META_FUNC2(sort, stable)
(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  maybe_wrap_dim(dim, self.dim(), "sort");
  native::Dims strides = self.is_non_overlapping_and_dense()
                             ? native::Dims(self.strides())
                             : native::infer_dense_strides(self.sizes(), self.strides());
  set_output_raw_strided(0, self.sizes(), strides, self.options());
  set_output_raw_strided(1, self.sizes(), strides, self.options().dtype(kLong));
}
LAMELLA_META_FUNC(topk)(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = maybe_wrap_dim(dim, self.dim(), "topk");
  int64_t size = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK(k >= 0 && k <= size, "topk: expected 'k' in [0, ", size, "], got ", k);
  native::Dims shape(self.sizes());
  if (self.dim() != 0) shape[static_cast<size_t>(dim)] = k;
  set_output_raw_strided(0, shape, {}, self.options());
  set_output_raw_strided(1, shape, {}, self.options().dtype(kLong));
}
}  // namespace meta

namespace native {

LAMELLA_IMPL_FUNC(sort_cpu)
(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending, const Tensor& values,
 const Tensor& indices) {
  dim = maybe_wrap_dim(dim, self.dim(), "sort");
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  order_lines("sort", self, dim, n, descending, values, indices);
}
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return lamella::sort(self, false, dim, descending);
}
std::tuple<Tensor&, Tensor&> sort_out(const Tensor& self, int64_t dim, bool descending,
                                      Tensor& values, Tensor& indices) {
  return lamella::sort_out(values, indices, self, false, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(lamella::sort(self, dim, descending));
}
Tensor argsort(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(lamella::sort(self, stable, dim, descending));
}

LAMELLA_IMPL_FUNC(topk_cpu)
(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values,
 const Tensor& indices) {
  dim = maybe_wrap_dim(dim, self.dim(), "topk");
  order_lines("topk", self, dim, self.dim() == 0 ? 1 : k, largest, values, indices);
}

}  // namespace native
}  // namespace lamella
