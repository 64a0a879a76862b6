// Convolutions by kernels of three by three as sixteen matrix products: Note [Winograd].
#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "lamella/core/interrupt.h"
#include "lamella/core/kept_forms.h"
#include "lamella/kernels/cpu/convolution_parts.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/cpu/simd/winograd.h"

namespace lamella::native {

namespace {

// The multiple of channels that fills whole vectors of every capability, and the fewest channels of
// the result for which this algorithm pays.
constexpr int64_t kChannelStep = 16, kLeastMade = 32;
// The fewest tiles for which transforming the kernel costs less than it saves.
constexpr int64_t kLeastTiles = 48;
// Bytes of the elements and products of a block of tiles: half of the second-level cache.
constexpr int64_t kBlockBytes = int64_t{1} << 19;
// With fewer tiles, a block's products are slow, because they read the weights for few rows.
constexpr int64_t kLeastBlock = 24;

// A convolution in terms of its result; the gradient of the input is one with the kernel reversed.
struct Problem {
  WinogradPlanes planes{};
  WinogradWeights weights{};
  int64_t batch, tiles, from_channel, to_channel;

  explicit Problem(const lamella_convolution& p) : batch(p.batch) {
    const bool forward = p.kind == LAMELLA_CONVOLUTION_FORWARD;
    from_channel = forward ? p.src_strides[1] : p.dst_strides[1];
    to_channel = forward ? p.dst_strides[1] : p.src_strides[1];
    WinogradPlanes& x = planes;
    auto lay = [](const int64_t(&strides)[5], const int64_t(&sizes)[3], int64_t* height,
                  int64_t* width, int64_t* sample, int64_t* row, int64_t* column) {
      *height = sizes[0];
      *width = sizes[1];
      *sample = strides[0];
      *row = strides[2];
      *column = strides[3];
    };
    lay(forward ? p.src_strides : p.dst_strides, forward ? p.in : p.out, &x.from_height,
        &x.from_width, &x.from_sample, &x.from_row, &x.from_column);
    lay(forward ? p.dst_strides : p.src_strides, forward ? p.out : p.in, &x.to_height, &x.to_width,
        &x.to_sample, &x.to_row, &x.to_column);
    x.from = static_cast<const float*>(forward ? p.src : p.dst);
    x.to = static_cast<float*>(forward ? p.dst : p.src);
    x.bias = static_cast<const float*>(p.bias);
    x.from_channels = forward ? p.in_channels : p.out_channels;
    x.to_channels = forward ? p.out_channels : p.in_channels;
    x.above = forward ? p.padding[0] : 2 - p.padding[0];
    x.left = forward ? p.padding[1] : 2 - p.padding[1];
    x.down = (x.to_height + 1) / 2;
    x.across = (x.to_width + 1) / 2;
    tiles = p.batch * x.down * x.across;
    const int64_t* s = p.weights_strides;
    weights = {static_cast<const float*>(p.weights),
               x.from_channels,
               x.to_channels,
               forward ? s[1] : s[0],
               forward ? s[0] : s[1],
               s[2],
               s[3]};
    if (forward) return;
    weights.weights += 2 * (s[2] + s[3]);
    weights.row = -s[2];
    weights.column = -s[3];
  }
};

bool is_winograd(const lamella_convolution& p) {
  if (p.kind == LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS || p.ndim != 2 || p.bfloat16 != 0 ||
      p.groups != 1) {
    return false;
  }
  for (int d = 0; d < 2; ++d) {
    if (p.kernel[d] != 3 || p.stride[d] != 1 || p.dilation[d] != 1 || p.padding[d] > 2) {
      return false;
    }
  }
  const bool forward = p.kind == LAMELLA_CONVOLUTION_FORWARD;
  return p.in_channels % kChannelStep == 0 && p.out_channels % kChannelStep == 0 &&
         (forward ? p.out_channels : p.in_channels) >= kLeastMade;
}

// Pixels with contiguous channels: the problem's memory, or a copy.
class Pixels {
 public:
  Pixels(float* data, const std::array<int64_t, 4>& sizes, const std::array<int64_t, 4>& strides)
      : sizes_(sizes), strides_(strides), data_(data) {
    if (strides[3] == 1) return;
    copy_ = new_tensor({sizes[0], sizes[1], sizes[2], sizes[3]}, kFloat, kCPU);
  }
  // Stores the strides between samples, rows and pixels.
  void place(int64_t* sample, int64_t* row, int64_t* column) const {
    const int64_t* strides = copy_.defined() ? copy_.strides().data() : strides_.data();
    *sample = strides[0];
    *row = strides[1];
    *column = strides[2];
  }
  float* data() const { return copy_.defined() ? static_cast<float*>(copy_.data_ptr()) : data_; }
  void read() const { copy(copy_, false); }
  void write() const { copy(copy_, true); }

 private:
  void copy(const Tensor& other, bool back) const {
    if (!other.defined()) return;
    StridedArray given{data_, strides_.data(), kFloat};
    StridedArray copied{other.data_ptr(), other.strides().data(), kFloat};
    copy_strided(sizes_.data(), 4, back ? given : copied, back ? copied : given);
  }
  std::array<int64_t, 4> sizes_, strides_;
  float* data_;
  Tensor copy_;
};

// Multiplies the tiles in blocks. Returns whether all results are finite.
bool run_blocks(const Problem& x, const float* weights, int64_t weights_row) {
  const WinogradKernels& kernels = *winograd_kernels_on(kCPU);
  const int64_t from = x.planes.from_channels, to = x.planes.to_channels;
  const int64_t each_bytes = kWinogradPoints * (from + to) * static_cast<int64_t>(sizeof(float));
  // Results do not depend on the block size, so it may depend on the number of threads.
  int64_t most = std::max(kLeastBlock, kBlockBytes / each_bytes);
  int64_t shares = in_parallel_region() ? 1 : get_num_threads();
  int64_t blocks = (x.tiles + most - 1) / most;
  if (shares > 1) blocks = std::max(blocks, std::min(2 * shares, x.tiles / kLeastBlock));
  const int64_t size = (x.tiles + blocks - 1) / std::max<int64_t>(blocks, 1);
  std::atomic<bool> finite{true};
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    Tensor space = new_tensor({kWinogradPoints * size * (from + to)}, kFloat, kCPU);
    auto* values = static_cast<float*>(space.data_ptr());
    float* products = values + kWinogradPoints * size * from;
    for (int64_t b = begin; b < end && finite.load(std::memory_order_relaxed); ++b) {
      check_interrupt();
      int64_t first = b * size, count = std::min(size, x.tiles - first);
      if (count <= 0) break;
      kernels.elements(x.planes, first, count, values);
      tiled_gemm({kFloat,
                  kWinogradPoints,
                  count,
                  to,
                  from,
                  {values, from, 1, count * from},
                  {weights, weights_row, 1, from * weights_row},
                  {products, to, 1, count * to}});
      if (!kernels.results(x.planes, first, count, products)) {
        finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  return finite.load(std::memory_order_relaxed);
}

// The transformed kernel, kept with the storage of the weights if they may be constants.
class Transformed {
 public:
  Transformed(const WinogradWeights& w, Storage* storage)
      // Pads rows whose distance is a multiple of a power of two, which would conflict in the
      // cache.
      : row_(w.to_channels + (w.to_channels % 256 == 0 ? kChannelStep : 0)) {
    const int64_t elements = kWinogradPoints * w.from_channels * row_;
    auto fill = [&](void* to) {
      parallel_for(
          0, w.from_channels, kGrainSize / w.to_channels + 1, [&](int64_t begin, int64_t end) {
            winograd_kernels_on(kCPU)->weights(w, begin, end, static_cast<float*>(to), row_);
          });
    };
    if (storage != nullptr) {
      // Keys of products and of the library's layouts have other numbers here.
      constexpr int64_t kOfWinograd = -2;
      auto both = [](int64_t a, int64_t b) { return (a << 32) + b; };
      KeptFormKey key = {reinterpret_cast<int64_t>(w.weights),
                         kOfWinograd,
                         both(w.from_channels, w.to_channels),
                         w.from,
                         w.to,
                         both(w.row, w.column)};
      form_.emplace(storage, key, elements * static_cast<int64_t>(sizeof(float)));
      if (form_->is_wanted()) {
        fill(form_->make());
        form_->keep();
      }
      if (form_->data() != nullptr) return;
    }
    space_ = new_tensor({elements}, kFloat, kCPU);
    fill(space_.data_ptr());
  }
  const float* data() const {
    return static_cast<const float*>(space_.defined() ? space_.data_ptr() : form_->data());
  }
  int64_t row() const { return row_; }

 private:
  int64_t row_;
  std::optional<KeptForm> form_;
  Tensor space_;
};

}  // namespace

bool winograd_convolution(const lamella_convolution& p, Storage* storage) {
  if (!is_winograd(p)) return false;
  Problem x(p);
  if (x.tiles < kLeastTiles) return false;
  WinogradPlanes& planes = x.planes;
  const Pixels from(const_cast<float*>(planes.from),
                    {x.batch, planes.from_height, planes.from_width, planes.from_channels},
                    {planes.from_sample, planes.from_row, planes.from_column, x.from_channel});
  const Pixels to(planes.to, {x.batch, planes.to_height, planes.to_width, planes.to_channels},
                  {planes.to_sample, planes.to_row, planes.to_column, x.to_channel});
  planes.from = from.data();
  from.place(&planes.from_sample, &planes.from_row, &planes.from_column);
  planes.to = to.data();
  to.place(&planes.to_sample, &planes.to_row, &planes.to_column);
  from.read();
  const Transformed weights(x.weights, storage);
  if (!run_blocks(x, weights.data(), weights.row())) return false;
  to.write();
  return true;
}

}  // namespace lamella::native
