// sort and topk.
#include <algorithm>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/cpu/ordering.h"
#include "lamella/kernels/selecting.h"

namespace lamella {
namespace native {
namespace {

// The number of adjacent lines that are copied at a time, so that each cache line is read and
// written once for all of them.
constexpr int64_t kBeside = 16;

bool lie_beside(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  int64_t last = self.dim() - 1;
  if (last < 1 || dim == last || self.size(last) < kBeside / 2 || self.size(dim) > 1 << 16)
    return false;
  auto is_one = [&](const Tensor& t) { return t.strides()[static_cast<size_t>(last)] == 1; };
  return is_one(self) && is_one(values) && is_one(indices);
}

template <class F>
void order_lines_beside(const Tensor& self, int64_t dim, int64_t k, bool descending,
                        const Tensor& values, const Tensor& indices, F&& order_one) {
  int64_t bytes = self.element_size(), last = self.size(-1), n = self.size(dim);
  KeyKind kind = key_kind(self.scalar_type(), descending);
  Lines outer({&self, &values, &indices}, dim, self.dim() - 1);
  int64_t groups = (last + kBeside - 1) / kBeside;
  auto* from = static_cast<const char*>(self.const_data_ptr());
  auto* to = static_cast<char*>(values.data_ptr());
  auto* places = indices.mutable_data_ptr<int64_t>();
  const Movement& move = movement_on(kCPU, bytes);
  const Movement& move_places = movement_on(kCPU, sizeof(int64_t));
  int64_t grain = 8192 / (n * kBeside) + 1;
  parallel_for(0, outer.count() * groups, grain, [&](int64_t begin, int64_t end) {
    OrderScratch scratch, inner;
    auto* order = reinterpret_cast<int64_t*>(scratch.third(kBeside * (n + 2 * k)));
    auto* ordered = reinterpret_cast<char*>(order + kBeside * k);
    char* lines = ordered + kBeside * k * bytes;
    for (int64_t i = begin; i < end; ++i) {
      int64_t column = i % groups * kBeside, count = std::min(kBeside, last - column);
      outer.walk(i / groups, i / groups + 1, [&](int64_t, const int64_t* starts) {
        auto* source = const_cast<char*>(from + (starts[0] + column) * bytes);
        move.plane({lines, {bytes, n * bytes}}, {source, {outer.stride(0) * bytes, bytes}}, n,
                   count, false);
        for (int64_t l = 0; l < count; ++l) {
          order_one(Line{kind, lines + l * n * bytes, bytes, n},
                    OrderedLine{ordered + l * k * bytes, bytes, order + l * k, 1}, inner);
        }
        move.plane({to + (starts[1] + column) * bytes, {bytes, outer.stride(1) * bytes}},
                   {ordered, {k * bytes, bytes}}, count, k, false);
        move_places.plane(
            {reinterpret_cast<char*>(places + starts[2] + column), {8, outer.stride(2) * 8}},
            {reinterpret_cast<char*>(order), {k * 8, 8}}, count, k, false);
      });
    }
  });
}

// Writes the first k elements of each line of `self` and their indices, which order_one(line, out,
// scratch) finds for one line. The outputs have size k along `dim`.
template <class F>
void order_lines(const char* op, const Tensor& self, int64_t dim, int64_t k, bool descending,
                 const Tensor& values, const Tensor& indices, F&& order_one) {
  visit_real(signed_type(self.scalar_type()), op, [](auto) {});
  if (values.numel() == 0) return;
  if (lie_beside(self, dim, values, indices)) {
    return order_lines_beside(self, dim, k, descending, values, indices, order_one);
  }
  Lines lines({&self, &values, &indices}, dim);
  int64_t bytes = self.element_size();
  auto* value = static_cast<char*>(values.data_ptr());
  auto* index = indices.mutable_data_ptr<int64_t>();
  for_each_line(lines, self, descending,
                [&](const Line& line, const int64_t* starts, OrderScratch& scratch) {
                  order_one(line,
                            OrderedLine{value + starts[1] * bytes, lines.stride(1) * bytes,
                                        index + starts[2], lines.stride(2)},
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
  order_lines("sort", self, dim, n, descending, values, indices,
              [n](const Line& line, const OrderedLine& out, OrderScratch& scratch) {
                order_line(line, n, out, scratch);
              });
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
  k = self.dim() == 0 ? 1 : k;
  order_lines("topk", self, dim, k, largest, values, indices,
              [k, sorted](const Line& line, const OrderedLine& out, OrderScratch& scratch) {
                order_first(line, k, sorted, out, scratch);
              });
}

}  // namespace native
}  // namespace lamella
