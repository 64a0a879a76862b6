// Products of real matrices by the kernels of simd/gemm.h: which loop takes a problem, what is
// packed, and how the work is distributed.
#include <algorithm>
#include <cstring>

#include "lamella/core/kept_forms.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/cpu/simd/gemm.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {

// Rows of a block, and its bytes of a: they stay in the second-level cache while b is streamed, so
// that b is read once for all of them.
constexpr int64_t kBlockRows = 256, kBlockBytes = int64_t{1} << 18;
// Columns of c in a block if k has several stretches: they stay in the second-level cache as well.
constexpr int64_t kBlockColumns = 1024;
// A b with contiguous rows is not packed if a has at most this many rows, or b this many bytes.
constexpr int64_t kUnpackedRows = 256, kUnpackedBytes = 16384;
// Shares that a large product is cut into: many, so that threads finish at about the same time.
constexpr int64_t kShares = 32;
// The fewest multiplications for which another thread pays.
constexpr int64_t kMinShareWork = int64_t{1} << 19;
// The most multiplications between two checks for interrupts.
constexpr int64_t kMaxShareWork = int64_t{1} << 31;
// The most bytes that are packed at a time.
constexpr int64_t kMaxPackedBytes = int64_t{1} << 26;
// Bytes of b that the second-level cache is likely to keep from one product to the next.
constexpr int64_t kNearBytes = int64_t{1} << 18;
// Shorter rows, in bytes, end before the hardware prefetcher detects the stream.
constexpr int64_t kShortRow = 3072;
// Packed bytes that fit on the stack.
constexpr int64_t kOnStack = 8192;

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
int64_t saturated_product(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

// The factor alpha as the kernels read it.
struct Factor {
  alignas(8) char bytes[8];

  Factor(const Scalar& value, ScalarType dtype) {
    auto set = [&](auto number) { std::memcpy(bytes, &number, sizeof(number)); };
    switch (dtype) {
      case kFloat:
      case kBFloat16:
        set(value.to<float>());
        break;
      case kDouble:
        set(value.to<double>());
        break;
      case kInt:
        set(value.to<int32_t>());
        break;
      default:
        set(value.to<int64_t>());
    }
  }
};

const GemmKernels& kernels_for(ScalarType dtype) {
  bool of_bytes = dtype == kChar || dtype == kByte || dtype == kShort;
  return *(of_bytes ? byte_gemm_kernels_on(kCPU, dtype) : gemm_kernels_on(kCPU, dtype));
}

// One product of a batch, with strides in bytes.
class Product {
 public:
  Product(const Gemm& p, int64_t i)
      : p_(p),
        kernels_(kernels_for(p.dtype)),
        k_((p.k + kernels_.group - 1) / kernels_.group),
        element_(kernels_.number_bytes * kernels_.group),
        b_row_(p.b.row * kernels_.number_bytes),
        b_column_(p.b.column * kernels_.number_bytes) {
    auto at = [&](const Matrices& x, int64_t bytes) {
      return static_cast<const char*>(x.data) + i * x.batch * bytes;
    };
    a_ = at(p.a, kernels_.number_bytes);
    b_ = at(p.b, kernels_.number_bytes);
    c_ = const_cast<char*>(at(p.c, kernels_.sum_bytes));
    d_ = p.d.data != nullptr ? at(p.d, kernels_.sum_bytes) : nullptr;
    is_row_major_ = (p.b.column == 1 || p.n == 1) && kernels_.group == 1;
    if (!is_row_major_ || (p.m > kUnpackedRows && k_ * p.n * element_ > kUnpackedBytes)) {
      unpacked_ = 0;
    } else {
      // Whole vectors of b are read, so a row must not end within one.
      unpacked_ = p.n % kernels_.lanes == 0 ? p.n : p.n / kernels_.columns * kernels_.columns;
    }
  }

  void run(const void* alpha) const {
    if (!is_row_major_ && p_.b.storage != nullptr && run_kept(alpha)) return;
    int64_t width = p_.n;
    if (unpacked_ == 0) {
      // The memory for packing is bounded, but holds at least one panel.
      int64_t panels = kMaxPackedBytes / std::max<int64_t>(k_ * element_ * kernels_.columns, 1);
      width = std::min(p_.n, std::max<int64_t>(panels, 1) * kernels_.columns);
    }
    for (int64_t j = 0; j < p_.n; j += width) columns(j, std::min(width, p_.n - j), alpha);
  }

 private:
  // Multiplies by the packed form of b that is kept with its storage, if there is one or it is made
  // now: rows that are padded to whole vectors.
  bool run_kept(const void* alpha) const {
    int64_t row = round_up(p_.n, kernels_.lanes) * element_;
    // Pads rows whose distance is a multiple of a power of two, which would conflict in the cache.
    if (row % 1024 == 0) row += 64;
    if (p_.n * k_ * element_ <= kOnStack) return false;
    KeptFormKey key = {reinterpret_cast<int64_t>(p_.b.data), p_.k, p_.n, p_.b.row, p_.b.column,
                       reinterpret_cast<int64_t>(&kernels_)};
    KeptForm form(p_.b.storage, key, row * k_);
    if (form.is_wanted()) {
      pack(b_, p_.n, static_cast<char*>(form.make()), row);
      form.keep();
    }
    if (form.data() == nullptr) return false;
    Product by_rows = *this;
    by_rows.b_ = static_cast<const char*>(form.data());
    by_rows.b_row_ = row;
    by_rows.b_column_ = element_;
    by_rows.multiply(0, p_.n, p_.n, nullptr, alpha);
    return true;
  }

  int64_t packed_bytes(int64_t n) const { return round_up(n, kernels_.lanes) * k_ * element_; }

  // Columns [first, first + n) of c.
  void columns(int64_t first, int64_t n, const void* alpha) const {
    int64_t unpacked = std::min(std::max<int64_t>(unpacked_ - first, 0), n);
    int64_t bytes = packed_bytes(n - unpacked);
    alignas(64) char local[kOnStack];
    Tensor space;
    char* packed = local;
    if (bytes > kOnStack) {
      space = new_tensor({bytes}, kByte, kCPU);
      packed = static_cast<char*>(space.data_ptr());
    }
    pack(b_ + (first + unpacked) * b_column_, n - unpacked, packed);
    multiply(first, n, unpacked, packed, alpha);
  }

  // The same, where the first `unpacked` columns are read from b directly, the others packed.
  void multiply(int64_t first, int64_t n, int64_t unpacked, const char* packed,
                const void* alpha) const {
    const char* b = b_ + first * b_column_;
    int64_t tile = kernels_.columns, panel = tile * element_, sum = kernels_.sum_bytes;
    GemmBlock whole{};
    whole.a_row = p_.a.row * kernels_.number_bytes;
    whole.a_step = p_.a.column * element_;
    whole.c_row = p_.c.row * sum;
    whole.d_row = p_.d.row * sum;
    whole.d_repeats = p_.d.column == 0;
    whole.alpha = alpha;
    bool reads_b = unpacked > 0;
    whole.b_is_far = reads_b && k_ * p_.n * element_ > kNearBytes;
    whole.b_row = reads_b ? b_row_ : panel;
    whole.b_panel = reads_b ? panel : panel * k_;
    int64_t tail = n % tile, full = n - tail;
    bool tail_is_packed = tail > 0 && unpacked < n;
    whole.tail_row = tail_is_packed ? round_up(tail, kernels_.lanes) * element_ : whole.b_row;
    const char* panels = reads_b ? b : packed;
    const char* last = tail_is_packed ? packed + (reads_b ? 0 : full) * k_ * element_
                                      : panels + full / tile * whole.b_panel;

    // Rows, then columns, are cut until the shares are small enough.
    int64_t most_rows = kBlockBytes / (std::clamp<int64_t>(k_, 1, kStretch) * element_);
    int64_t down = (p_.m - 1) / std::clamp<int64_t>(most_rows, 64, kBlockRows) + 1;
    int64_t rows = std::min(p_.m, round_up((p_.m + down - 1) / down, 8));
    down = (p_.m + rows - 1) / rows;
    int64_t work = saturated_product(saturated_product(rows, n), k_ + 1);
    int64_t wanted = std::max((kShares + down - 1) / down, work / kMaxShareWork + 1);
    int64_t across = std::max<int64_t>(1, std::min(wanted, work / kMinShareWork));
    int64_t wide = round_up((n + across - 1) / across, tile);
    across = (n + wide - 1) / wide;
    int64_t grain = std::max<int64_t>(1, kMinShareWork / std::max<int64_t>(work / across, 1));
    // If b is read once, parts are long, so that each panel prefetches the next one.
    int64_t long_part = down == 1 ? across / get_num_threads() : 1;
    grain = std::max(grain, std::min(long_part, kMaxShareWork / (work / across + 1)));
    parallel_for(0, down * across, grain, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin, count; share < end; share += count) {
        int64_t i = share / across * rows, j = share % across * wide;
        // Adjacent shares of the same rows are computed as one block.
        count = std::min(end - share, across - share % across);
        if (k_ > kStretch) count = std::clamp<int64_t>(kBlockColumns / wide, 1, count);
        GemmBlock g = whole;
        g.m = std::min(rows, p_.m - i);
        g.n = std::min(count * wide, n - j);
        const char* a = a_ + i * whole.a_row;
        g.b = panels + j / tile * whole.b_panel;
        g.tail = last;
        g.c = c_ + i * whole.c_row + (first + j) * sum;
        if (d_ != nullptr) g.d = d_ + i * whole.d_row + (whole.d_repeats ? 0 : first + j) * sum;
        for (int64_t l = 0; l == 0 || l < k_; l += kStretch) {
          g.a = a + l * whole.a_step;
          g.k = std::min(kStretch, k_ - l);
          g.after = l + g.k < k_ ? g.b + g.k * whole.b_row : nullptr;
          kernels_.block(g);
          g.b += g.k * whole.b_row;
          g.tail += g.k * whole.tail_row;
          g.d = g.c;
          g.d_row = g.c_row;
          g.d_repeats = false;
        }
      }
    });
  }

  // Into panels, or into rows `to_row` bytes apart.
  void pack(const char* b, int64_t n, char* to, int64_t to_row = 0) const {
    if (n <= 0 || k_ == 0) return;
    int64_t tile = kernels_.columns;
    GemmPacking all{b, b_row_, b_column_, to, n, k_, to_row};
    int64_t panels = (n + tile - 1) / tile;
    int64_t grain = (1 << 16) / (tile * k_) + 1;
    if (panels <= grain) return kernels_.pack(all);
    parallel_for(0, panels, grain, [&](int64_t begin, int64_t end) {
      GemmPacking part = all;
      part.b += begin * tile * all.column;
      part.to += begin * tile * element_ * (to_row == 0 ? k_ : 1);
      part.n = std::min(end * tile, n) - begin * tile;
      kernels_.pack(part);
    });
  }

  const Gemm& p_;
  const GemmKernels& kernels_;
  int64_t k_;        // in elements
  int64_t element_;  // bytes
  int64_t b_row_, b_column_;
  const char* a_;
  const char* b_;
  char* c_;
  const char* d_;
  bool is_row_major_;
  int64_t unpacked_;  // columns of b that are read directly; the others are packed
};

bool rows_are_dense(const Matrices& x, int64_t columns) { return x.column == 1 || columns == 1; }

}  // namespace

namespace {
// Up to these sizes, a product with few columns costs little more than its setup.
constexpr int64_t kSmallRows = 32, kSmallInner = 64;

bool is_small(const Gemm& p) {
  const GemmKernels& kernels = kernels_for(p.dtype);
  return kernels.small != nullptr && p.n <= kernels.lanes && p.m <= kSmallRows &&
         p.k <= kSmallInner && p.k > 0 && (p.b.column == 1 || p.n == 1);
}

void small_gemms(const Gemm& p, const Factor& alpha) {
  const GemmKernels& kernels = kernels_for(p.dtype);
  int64_t bytes = kernels.number_bytes;
  GemmSmall all{};
  all.a_next = p.a.batch * bytes;
  all.b_next = p.b.batch * bytes;
  all.c_next = p.c.batch * bytes;
  all.d_next = p.d.batch * bytes;
  GemmBlock& g = all.first;
  g.a_row = p.a.row * bytes;
  g.a_step = p.a.column * bytes;
  g.b_row = p.b.row * bytes;
  g.c_row = p.c.row * bytes;
  g.d_row = p.d.row * bytes;
  g.m = p.m;
  g.n = p.n;
  g.k = p.k;
  g.alpha = alpha.bytes;
  parallel_for(0, p.batch, kMinShareWork / (p.m * p.n * p.k) + 1, [&](int64_t begin, int64_t end) {
    GemmSmall part = all;
    part.count = end - begin;
    part.first.a = static_cast<const char*>(p.a.data) + begin * all.a_next;
    part.first.b = static_cast<const char*>(p.b.data) + begin * all.b_next;
    part.first.c = static_cast<char*>(const_cast<void*>(p.c.data)) + begin * all.c_next;
    if (p.d.data != nullptr) {
      part.first.d = static_cast<const char*>(p.d.data) + begin * all.d_next;
    }
    kernels.small(part);
  });
}
}  // namespace

void tiled_gemm(const Gemm& p) {
  Factor alpha(p.alpha, p.dtype);
  if (is_small(p)) return small_gemms(p, alpha);
  int64_t work = saturated_product(saturated_product(p.m, p.n), p.k + 1);
  // Large products share their own work.
  if (p.batch == 1 || work > 16 * kMinShareWork) {
    for (int64_t i = 0; i < p.batch; ++i) Product(p, i).run(alpha.bytes);
    return;
  }
  parallel_for(0, p.batch, kMinShareWork / std::max<int64_t>(work, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) Product(p, i).run(alpha.bytes);
               });
}

bool is_dots_gemm(const Gemm& p, int64_t most_rows) {
  const GemmKernels& kernels = kernels_for(p.dtype);
  return kernels.dots != nullptr && p.m <= most_rows && rows_are_dense(p.b.transposed(), p.k) &&
         rows_are_dense(p.a, p.k) && p.k >= kernels.lanes * kernels.group;
}

void dots_gemm(const Gemm& p) {
  const GemmKernels& kernels = kernels_for(p.dtype);
  int64_t number = kernels.number_bytes, sum = kernels.sum_bytes;
  Factor alpha(p.alpha, p.dtype);
  GemmDots whole{};
  whole.a_row = p.a.row * number;
  whole.b_row = p.b.column * number;
  whole.c_row = p.c.row * sum;
  whole.c_column = p.c.column * sum;
  whole.d_row = p.d.row * sum;
  whole.d_column = p.d.column * sum;
  whole.m = p.m;
  whole.k = (p.k + kernels.group - 1) / kernels.group;
  whole.alpha = alpha.bytes;
  int64_t row_bytes = p.k * number;
  whole.b_is_far = p.n * row_bytes > kNearBytes;
  whole.b_is_short = row_bytes <= kShortRow;
  // Columns that are assigned to a thread together: a multiple of the columns of one loop.
  int64_t wide = std::max<int64_t>(64, round_up(kMinShareWork / (whole.k * p.m) / 4, 64));
  int64_t across = (p.n + wide - 1) / wide;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      int64_t i = share / across, j = share % across * wide;
      auto at = [&](const Matrices& x, int64_t bytes) {
        return static_cast<const char*>(x.data) + i * x.batch * bytes;
      };
      GemmDots g = whole;
      g.a = at(p.a, number);
      g.b = at(p.b, number) + j * whole.b_row;
      g.c = const_cast<char*>(at(p.c, sum)) + j * whole.c_column;
      if (p.d.data != nullptr) g.d = at(p.d, sum) + j * whole.d_column;
      g.n = std::min(wide, p.n - j);
      kernels.dots(g);
    }
  };
  parallel_for(0, p.batch * across, kMinShareWork / (whole.k * p.m * std::min(wide, p.n)) + 1, run);
}

bool has_gemm(ScalarType dtype) { return gemm_kernels_on(kCPU, dtype) != nullptr; }

}  // namespace lamella::native
