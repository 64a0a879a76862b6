// Convolutions by cuDNN, and without it, or for what it does not compute, as matrix products.
//
// Note [Convolutions by cuDNN]
//   The algorithm of a problem is asked for once and kept: the first in the library's order that is
//   deterministic. One spatial dimension is given as two. Weights of channels-last tensors are
//   copied to that format.
#include <cstring>
#include <map>
#include <vector>

#include "lamella/cuda/allocator.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/libraries.h"
#include "lamella/cuda/library_values.h"
#include "lamella/cuda/math.h"
#include "lamella/cuda/streams.h"
#include "lamella/lamella.h"

namespace lamella::cuda {
namespace {

using native::Convolution;
using native::Dims;

constexpr int kMostAlgorithms = 10;
constexpr size_t kMostWorkspace = size_t{1} << 30;

enum class Direction : int64_t { kForward, kData, kWeight };

int type_of_cudnn(ScalarType dtype) {
  return dtype == kFloat      ? dnn::kFloatData
         : dtype == kDouble   ? dnn::kDoubleData
         : dtype == kHalf     ? dnn::kHalfData
         : dtype == kBFloat16 ? dnn::kBFloat16Data
                              : -1;
}

// Whether the library accepts the sizes: those of the output follow from the others.
bool fits(const Convolution& c) {
  int64_t all = c.batch;
  for (int d = 0; d < c.ndim; ++d) {
    const int64_t room = c.in[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1;
    if (room < 0 || room / c.stride[d] + 1 != c.out[d]) return false;
    all *= (c.in[d] > c.out[d] ? c.in[d] : c.out[d]) + 2 * c.padding[d];
    if (c.stride[d] > INT32_MAX || c.dilation[d] > INT32_MAX || all > INT32_MAX) return false;
  }
  return all * (c.in_channels > c.out_channels ? c.in_channels : c.out_channels) <= INT32_MAX;
}

// The descriptors of a problem.
struct Description {
  const Cudnn& lib;
  void *src = nullptr, *dst = nullptr, *weight = nullptr, *convolution = nullptr;

  Description(const Cudnn& library, const Convolution& c) : lib(library) {
    const int type = type_of_cudnn(c.dtype), line = c.ndim == 1 ? 1 : 0, dims = c.ndim + line;
    auto check = [](int status) { check_library(status, "cudnnSetTensorNdDescriptor"); };
    check(lib.cudnnCreateTensorDescriptor(&src));
    check(lib.cudnnCreateTensorDescriptor(&dst));
    check(lib.cudnnCreateFilterDescriptor(&weight));
    check(lib.cudnnCreateConvolutionDescriptor(&convolution));
    auto tensor = [&](void* descriptor, int64_t channels, const int64_t* spatial) {
      int sizes[5] = {static_cast<int>(c.batch), static_cast<int>(channels), 1, 1, 1};
      int strides[5];
      for (int d = 0; d < c.ndim; ++d) sizes[2 + line + d] = static_cast<int>(spatial[d]);
      int step = 1;
      if (c.channels_last) {
        strides[1] = 1;
        step = sizes[1];
      }
      for (int d = dims + 1; d >= 2; step *= sizes[d--]) strides[d] = step;
      if (!c.channels_last) {
        strides[1] = step;
        step *= sizes[1];
      }
      strides[0] = step;
      check(lib.cudnnSetTensorNdDescriptor(descriptor, type, dims + 2, sizes, strides));
    };
    tensor(src, c.in_channels, c.in);
    tensor(dst, c.out_channels, c.out);
    int kernel[5] = {static_cast<int>(c.out_channels), static_cast<int>(c.in_channels / c.groups),
                     1, 1, 1};
    int padding[3] = {}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    for (int d = 0; d < c.ndim; ++d) {
      kernel[2 + line + d] = static_cast<int>(c.kernel[d]);
      padding[line + d] = static_cast<int>(c.padding[d]);
      stride[line + d] = static_cast<int>(c.stride[d]);
      dilation[line + d] = static_cast<int>(c.dilation[d]);
    }
    check(lib.cudnnSetFilterNdDescriptor(
        weight, type, c.channels_last ? dnn::kChannelsLast : dnn::kRows, dims + 2, kernel));
    check(lib.cudnnSetConvolutionNdDescriptor(
        convolution, dims, padding, stride, dilation, dnn::kCrossCorrelation,
        c.dtype == kDouble ? dnn::kDoubleData : dnn::kFloatData));
    check(lib.cudnnSetConvolutionGroupCount(convolution, static_cast<int>(c.groups)));
    const bool plain = c.dtype == kFloat && !allows_tf32(Tf32::kConvolutions);
    const bool small = c.dtype == kHalf || c.dtype == kBFloat16;
    set_math(plain ? dnn::kFloatMath : small ? dnn::kTensorMath : dnn::kDefaultMath);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  ~Description() {
    if (convolution != nullptr) lib.cudnnDestroyConvolutionDescriptor(convolution);
    if (weight != nullptr) lib.cudnnDestroyFilterDescriptor(weight);
    if (dst != nullptr) lib.cudnnDestroyTensorDescriptor(dst);
    if (src != nullptr) lib.cudnnDestroyTensorDescriptor(src);
  }
  void set_math(int math) {
    check_library(lib.cudnnSetConvolutionMathType(convolution, math),
                  "cudnnSetConvolutionMathType");
  }
};

struct Algorithms {
  std::mutex mutex;
  std::map<std::vector<int64_t>, dnn::Performance> of;
};
Algorithms& algorithms = *new Algorithms();

// The algorithm of a problem, whose status is not 0 if the library has none.
dnn::Performance choose(void* handle, const Description& d, Direction direction) {
  dnn::Performance all[kMostAlgorithms];
  int given = 0;
  const auto ask =
      direction == Direction::kForward
          ? d.lib.cudnnGetConvolutionForwardAlgorithm_v7(handle, d.src, d.weight, d.convolution,
                                                         d.dst, kMostAlgorithms, &given, all)
      : direction == Direction::kData
          ? d.lib.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                handle, d.weight, d.dst, d.convolution, d.src, kMostAlgorithms, &given, all)
          : d.lib.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                handle, d.src, d.dst, d.convolution, d.weight, kMostAlgorithms, &given, all);
  dnn::Performance none{};
  none.status = ask != 0 ? ask : -1;
  if (ask != 0) return none;
  for (bool any : {false, true}) {
    for (int i = 0; i < given; ++i) {
      if (all[i].status == 0 && all[i].memory <= kMostWorkspace &&
          (any || all[i].determinism == dnn::kDeterministic))
        return all[i];
    }
  }
  return none;
}

HandlePool& handles = *new HandlePool();

// `weight` has the format of src and dst.
bool by_cudnn(const Convolution& c, Direction direction, const Tensor& src, const Tensor& weight,
              const Tensor& dst) {
  const Cudnn* lib = cudnn();
  if (lib == nullptr || type_of_cudnn(c.dtype) < 0 || !fits(c)) return false;
  const int device = dst.device().index();
  ContextGuard guard(device);
  const PooledHandle pooled(handles, device, lib->cudnnCreate);
  void* handle = pooled.get();
  if (handle == nullptr) return false;
  const StreamHandle stream = handle_of(device, current().streams[device]);
  if (lib->cudnnSetStream(handle, stream) != 0) return false;
  Description d(*lib, c);
  std::vector<int64_t> key{static_cast<int64_t>(direction),
                           static_cast<int64_t>(c.dtype),
                           c.channels_last,
                           device,
                           c.batch,
                           c.groups,
                           c.in_channels,
                           c.out_channels,
                           allows_tf32(Tf32::kConvolutions)};
  for (const int64_t* sizes : {c.in, c.out, c.kernel, c.stride, c.padding, c.dilation}) {
    key.insert(key.end(), sizes, sizes + c.ndim);
  }
  dnn::Performance chosen;
  {
    std::lock_guard lock(algorithms.mutex);
    auto [at, is_new] = algorithms.of.try_emplace(key);
    if (is_new) at->second = choose(handle, d, direction);
    chosen = at->second;
  }
  if (chosen.status != 0) return false;
  d.set_math(chosen.math);
  const Workspace work(device, chosen.memory);
  const double ones[2] = {1, 0};
  const float one_floats[2] = {1, 0};
  const void *one = &one_floats[0], *zero = &one_floats[1];
  if (c.dtype == kDouble) one = &ones[0], zero = &ones[1];
  void *x = src.data_ptr(), *w = weight.data_ptr(), *y = dst.data_ptr();
  Driver::note_launch(device, "cudnnConvolution");
  int status = 0;
  if (direction == Direction::kForward) {
    status =
        lib->cudnnConvolutionForward(handle, one, d.src, x, d.weight, w, d.convolution,
                                     chosen.algorithm, work.data(), chosen.memory, zero, d.dst, y);
  } else if (direction == Direction::kData) {
    status = lib->cudnnConvolutionBackwardData(handle, one, d.weight, w, d.dst, y, d.convolution,
                                               chosen.algorithm, work.data(), chosen.memory, zero,
                                               d.src, x);
  } else {
    status = lib->cudnnConvolutionBackwardFilter(handle, one, d.src, x, d.dst, y, d.convolution,
                                                 chosen.algorithm, work.data(), chosen.memory, zero,
                                                 d.weight, w);
  }
  if (status != 0) {  // where it fails after all, matrix products compute
    std::lock_guard lock(algorithms.mutex);
    algorithms.of[key].status = status;
    return false;
  }
  after_launch(device, stream);
  return true;
}

// ---- As matrix products ----
//
// Each position of the kernel is a strided view of the padded source; together they are the rows of
// a matrix for each sample and group, with a column for each position of the output.

struct Windows {
  const Convolution& c;
  Dims padded;          // sizes of the padded source
  Dims sizes, strides;  // of the views: batch, channels, kernel, output
  int64_t rows, outputs = 1;

  explicit Windows(const Convolution& problem) : c(problem) {
    padded.push_back(c.batch);
    padded.push_back(c.in_channels);
    for (int d = 0; d < c.ndim; ++d) {
      const int64_t reach = (c.out[d] - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1;
      const int64_t size = c.in[d] + 2 * c.padding[d];
      padded.push_back(size > reach ? size : reach);
    }
    Dims steps(padded.size(), 1);
    for (size_t d = padded.size() - 1; d-- > 0;) steps[d] = steps[d + 1] * padded[d + 1];
    sizes = Dims(padded.ref().slice(0, 2));
    strides = Dims(steps.ref().slice(0, 2));
    rows = c.in_channels / c.groups;
    for (int d = 0; d < c.ndim; ++d) {
      sizes.push_back(c.kernel[d]);
      strides.push_back(steps[static_cast<size_t>(d) + 2] * c.dilation[d]);
      rows *= c.kernel[d];
    }
    for (int d = 0; d < c.ndim; ++d) {
      sizes.push_back(c.out[d]);
      strides.push_back(steps[static_cast<size_t>(d) + 2] * c.stride[d]);
      outputs *= c.out[d];
    }
  }
  // The part of a padded tensor that is the source.
  Tensor inner(Tensor t) const {
    for (int d = 0; d < c.ndim; ++d) t = t.narrow(d + 2, c.padding[d], c.in[d]);
    return t;
  }
  // [batch, groups, rows, outputs]
  Tensor columns(const Tensor& src) const {
    Tensor whole = lamella::zeros(padded, src.options());
    inner(whole).copy_(src);
    return whole.as_strided(sizes, strides).reshape({c.batch, c.groups, rows, outputs});
  }
  Tensor grouped_weight(const Tensor& weight) const {
    return weight.reshape({c.groups, c.out_channels / c.groups, rows});
  }
  Tensor grouped(const Tensor& dst) const {
    return dst.reshape({c.batch, c.groups, c.out_channels / c.groups, outputs});
  }
};

bool is_small(ScalarType dtype) { return dtype == kHalf || dtype == kBFloat16; }

bool products_forward(const Convolution& c, const Tensor& src, const Tensor& weight, Tensor dst) {
  const Windows w(c);
  dst.copy_(w.grouped_weight(weight).matmul(w.columns(src)).reshape(dst.sizes()));
  return true;
}
bool products_backward_data(const Convolution& c, const Tensor& dst, const Tensor& weight,
                            Tensor src) {
  const Windows w(c);
  const Tensor columns = w.grouped_weight(weight).mT().matmul(w.grouped(dst)).view(w.sizes);
  Tensor whole = lamella::zeros(w.padded, columns.options());
  int64_t taps = 1;
  for (int d = 0; d < c.ndim; ++d) taps *= c.kernel[d];
  const Tensor views = whole.as_strided(w.sizes, w.strides);
  for (int64_t tap = 0; tap < taps; ++tap) {  // taps of one position do not overlap
    Tensor to = views, from = columns;
    int64_t rest = tap;
    for (int d = c.ndim - 1; d >= 0; rest /= c.kernel[d--]) {
      to = to.select(2 + d, rest % c.kernel[d]);
      from = from.select(2 + d, rest % c.kernel[d]);
    }
    to.add_(from);
  }
  src.copy_(w.inner(whole));
  return true;
}
bool products_backward_weight(const Convolution& c, const Tensor& src, const Tensor& dst,
                              Tensor weight) {
  const Windows w(c);
  const Tensor y = w.grouped(dst)
                       .permute({1, 2, 0, 3})
                       .reshape({c.groups, c.out_channels / c.groups, c.batch * w.outputs});
  const Tensor x =
      w.columns(src).permute({1, 0, 3, 2}).reshape({c.groups, c.batch * w.outputs, w.rows});
  weight.copy_(lamella::bmm(y, x).reshape(weight.sizes()));
  return true;
}

bool has_products(const Convolution& c) {
  return c.batch > 0 && c.in_channels > 0 && c.out_channels > 0;
}
Tensor wide(const Tensor& t) { return is_small(t.scalar_type()) ? t.to(kFloat) : t; }
Tensor in_format(const Convolution& c, const Tensor& weight) {
  if (!c.channels_last) return weight;
  return weight.contiguous(c.ndim == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

}  // namespace

bool convolve_forward(const char*, const Convolution& c, const Tensor& src, const Tensor& weight,
                      const Tensor& bias, const Tensor& dst) {
  if (!has_products(c)) return false;
  if (!by_cudnn(c, Direction::kForward, src, in_format(c, weight), dst) &&
      !products_forward(c, wide(src), wide(weight), dst)) {
    return false;
  }
  if (!bias.defined()) return true;
  Dims shape(static_cast<size_t>(dst.dim()), 1);
  shape[1] = bias.numel();
  const_cast<Tensor&>(dst).add_(bias.view(shape));
  return true;
}
bool convolve_backward_data(const char*, const Convolution& c, const Tensor& dst,
                            const Tensor& weight, const Tensor& src) {
  if (!has_products(c)) return false;
  return by_cudnn(c, Direction::kData, src, in_format(c, weight), dst) ||
         products_backward_data(c, wide(dst), wide(weight), src);
}
bool convolve_backward_weight(const char*, const Convolution& c, const Tensor& src,
                              const Tensor& dst, const Tensor& weight) {
  if (!has_products(c)) return false;
  Tensor to = c.channels_last ? lamella::empty_like(in_format(c, weight)) : weight;
  if (!by_cudnn(c, Direction::kWeight, src, to, dst)) {
    return products_backward_weight(c, wide(src), wide(dst), weight);
  }
  if (!to.is_same(weight)) const_cast<Tensor&>(weight).copy_(to);
  return true;
}

}  // namespace lamella::cuda
