// The k-th element, the median and the mode of lines.
#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/ordering.h"
#include "lamella/kernels/selecting.h"

namespace lamella::native {

namespace {

// The index of the last element of the longest run of equal elements in a sorted line; of runs of
// that length the first counts. NaN differs from NaN.
template <class T>
int64_t longest_run(const char* values, int64_t stride, int64_t n) {
  auto at = [&](int64_t i) -> compute_type<T> {
    return static_cast<T>(*reinterpret_cast<const Stored<T>*>(values + i * stride));
  };
  int64_t start = 0, longest = 0, end = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && at(i) != at(i - 1)) start = i;
    if (i - start + 1 > longest) {
      longest = i - start + 1;
      end = i;
    }
  }
  count_steps(n);
  return end;
}

// Position of the wanted element in the stable order.
int64_t rank_in(const Line& line, Selecting what, int64_t k) {
  if (what == Selecting::kKth) return k;
  int64_t n = line.n, nans = count_nan(line);
  if (what == Selecting::kNanMedian) return nans == n ? 0 : (n - nans - 1) / 2;
  return nans > 0 ? n - nans : (n - 1) / 2;
}

// `values` and `indices` have size 1 along dim.
void select_kernel(const char* op, const Tensor& self, int64_t dim, Selecting what, int64_t k,
                   const Tensor& values, const Tensor& indices) {
  int64_t bytes = self.element_size();
  auto* value = static_cast<char*>(values.data_ptr());
  auto* index = indices.mutable_data_ptr<int64_t>();
  Lines lines({&self, &values, &indices}, dim);
  visit_real(signed_type(self.scalar_type()), op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    for_each_line(
        lines, self, false, [&](const Line& line, const int64_t* starts, OrderScratch& scratch) {
          int64_t at;
          if (what == Selecting::kMode) {
            uint64_t* sorted = scratch.third(2 * line.n);
            auto* order = reinterpret_cast<int64_t*>(sorted + line.n);
            order_line(line, line.n, {reinterpret_cast<char*>(sorted), bytes, order, 1}, scratch);
            at = order[longest_run<T>(reinterpret_cast<char*>(sorted), bytes, line.n)];
          } else {
            at = select_in_line(line, rank_in(line, what, k), scratch);
            if (what == Selecting::kKth) at = settle_kth(line, k, at, scratch);
          }
          *reinterpret_cast<Stored<T>*>(value + starts[1] * bytes) =
              *reinterpret_cast<const Stored<T>*>(line.element(at));
          index[starts[2]] = at;
        });
  });
}

}  // namespace

LAMELLA_REGISTER_KERNEL(select_on, &select_kernel);

}  // namespace lamella::native
