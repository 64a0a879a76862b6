// cummax and cummin: the extreme of the elements so far along a dimension, and its index.
#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

Pair make_outputs(const char* op, const Tensor& self, int64_t dim) {
  maybe_wrap_dim(dim, self.dim(), op);
  LAMELLA_CHECK(!self.is_complex(), op, ": expected 'self' to be real, got ", self.dtype());
  return {new_tensor(self.sizes(), self.scalar_type(), self.device()),
          new_tensor(self.sizes(), kLong, self.device())};
}

// True if x, which comes later, replaces `best`. Of equal elements the last one counts, and NaN
// replaces every number.
template <bool kLargest, class T>
bool takes_over(T x, T best) {
  bool is_further = kLargest ? x >= best : x <= best;
  return (x != x) | (!(best != best) & is_further);
}

constexpr int64_t kBlock = 16;

template <bool kLargest>
Pair cum_extreme(const char* op, const Tensor& self, int64_t dim) {
  Pair result = make_outputs(op, self, dim);
  if (self.numel() == 0) return result;
  dim = maybe_wrap_dim(dim, self.dim(), op);
  if (self.device() != kCPU) {
    auto on_device = device_lines(op, self.device().type()).cum_extreme;
    auto& [values, indices] = result;
    require_on_device(on_device(kLargest, self, dim, values, indices), op, self);
    return result;
  }
  Tensor x = self.contiguous();
  int64_t size = x.dim() == 0 ? 1 : x.sizes()[static_cast<size_t>(dim)], inner = 1;
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.sizes()[static_cast<size_t>(d)];
  visit_real(x.scalar_type(), op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    // The byte of a bool may be any number.
    using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    auto* from = static_cast<const Element*>(x.const_data_ptr());
    auto read = [from](int64_t i) -> T {
      if constexpr (std::is_same_v<T, bool>) return from[i] != 0;
      return from[i];
    };
    auto* values = static_cast<T*>(std::get<0>(result).data_ptr());
    auto* indices = static_cast<int64_t*>(std::get<1>(result).data_ptr());
    parallel_for(0, x.numel() / size, kGrainSize / size + 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t at = line / inner * size * inner + line % inner;
        T best = read(at);
        int64_t where = 0, i = 0;
        if (inner == 1) {
          // Most blocks of a long line have no new extreme.
          for (; i + kBlock <= size; i += kBlock) {
            uint32_t any = 0;
            for (int64_t l = 0; l < kBlock; ++l) {
              const auto x = static_cast<C>(read(at + i + l));
              any |= takes_over<kLargest>(x, static_cast<C>(best)) ? 1u : 0u;
            }
            for (int64_t l = i; any != 0 && l < i + kBlock; ++l) {
              if (takes_over<kLargest>(static_cast<C>(read(at + l)), static_cast<C>(best))) {
                best = read(at + l);
                where = l;
              }
              values[at + l] = best;
              indices[at + l] = where;
            }
            if (any != 0) continue;
            for (int64_t l = 0; l < kBlock; ++l) values[at + i + l] = best;
            for (int64_t l = 0; l < kBlock; ++l) indices[at + i + l] = where;
          }
          count_steps(i);
          at += i;
        }
        for (; i < size; ++i, at += inner) {
          if (takes_over<kLargest>(static_cast<C>(read(at)), static_cast<C>(best))) {
            best = read(at);
            where = i;
          }
          values[at] = best;
          indices[at] = where;
          if ((i & 0xffff) == 0xffff) count_steps(0x10000);
        }
      }
    });
  });
  return result;
}

}  // namespace

Pair cummax_cpu(const Tensor& self, int64_t dim) { return cum_extreme<true>("cummax", self, dim); }
Pair cummin_cpu(const Tensor& self, int64_t dim) { return cum_extreme<false>("cummin", self, dim); }
Pair cummax_meta(const Tensor& self, int64_t dim) { return make_outputs("cummax", self, dim); }
Pair cummin_meta(const Tensor& self, int64_t dim) { return make_outputs("cummin", self, dim); }

}  // namespace lamella::native
