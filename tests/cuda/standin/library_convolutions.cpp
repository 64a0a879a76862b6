// The stand-in for cuDNN.
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/cuda/standin/library.h"

namespace standin {
namespace {

constexpr size_t kWorkspace = 1024;
constexpr int kAlgorithm = 1, kPlainMath = 3;

struct Handle {
  uint64_t kind = 0x71;
  void* stream = nullptr;
};
struct Tensor {
  uint64_t kind = 0x72;
  int type = -1, dims = 0;
  int sizes[5] = {}, strides[5] = {};
};
struct Filter {
  uint64_t kind = 0x73;
  int type = -1, format = 0, dims = 0;
  int sizes[5] = {};
};
struct Convolution {
  uint64_t kind = 0x74;
  int dims = 0, padding[3] = {}, stride[3] = {}, dilation[3] = {}, compute = 0, groups = 1,
      math = 0;
};
struct Performance {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

template <class T>
T& of(void* handle) {
  auto* made = static_cast<T*>(handle);
  EXPECT(made != nullptr && made->kind == T().kind);
  return *made;
}
// cudnnDataType_t as a type of data.
int type_of(int type) {
  EXPECT(type == 0 || type == 1 || type == 2 || type == 9);
  return type == 9 ? static_cast<int>(kBF16) : type;
}

// The description of a problem, with its layouts checked.
struct Problem {
  Tensor src, dst;
  Filter weight;
  Convolution c;
  int dims;
  int64_t weight_strides[5];

  Problem(void* x, void* w, void* made, void* y)
      : src(of<Tensor>(x)), dst(of<Tensor>(y)), weight(of<Filter>(w)), c(of<Convolution>(made)) {
    dims = c.dims;
    EXPECT(dims == 2 || dims == 3);
    EXPECT(src.dims == dims + 2 && dst.dims == dims + 2 && weight.dims == dims + 2);
    EXPECT(src.type == dst.type && src.type == weight.type);
    EXPECT(c.compute == (src.type == 1 ? 1 : 0));
    EXPECT(src.sizes[0] == dst.sizes[0] && dst.sizes[1] == weight.sizes[0]);
    EXPECT(src.sizes[1] == weight.sizes[1] * c.groups && weight.sizes[0] % c.groups == 0);
    for (int d = 0; d < dims; ++d) {
      const int room =
          src.sizes[2 + d] + 2 * c.padding[d] - c.dilation[d] * (weight.sizes[2 + d] - 1) - 1;
      EXPECT(room >= 0 && room / c.stride[d] + 1 == dst.sizes[2 + d]);
    }
    const bool last = weight.format == 1;
    EXPECT((last ? src.strides[1] : src.strides[dims + 1]) == 1 || src.sizes[1] == 1);
    EXPECT(!last || dst.strides[1] == 1);
    int64_t step = last ? weight.sizes[1] : 1;
    for (int d = dims + 1; d >= 2; step *= weight.sizes[d--]) weight_strides[d] = step;
    weight_strides[1] = last ? 1 : step;
    weight_strides[0] = last ? step : step * weight.sizes[1];
  }
  static size_t span(const Tensor& t) {
    int64_t last = 0;
    for (int d = 0; d < t.dims; ++d) last += int64_t{t.sizes[d] - 1} * t.strides[d];
    return static_cast<size_t>(last + 1) * bytes_of(type_of(t.type));
  }
  void check_memory(const void* x, const void* w, const void* y) const {
    size_t weights = bytes_of(type_of(weight.type));
    for (int d = 0; d < weight.dims; ++d) weights *= static_cast<size_t>(weight.sizes[d]);
    EXPECT(standin_holds(x, span(src)) && standin_holds(y, span(dst)));
    EXPECT(standin_holds(w, weights));
  }
  // Calls f(offset in src, in weight, in dst) for each product of the convolution.
  template <class F>
  void for_each(F f) const {
    const int each = weight.sizes[0] / c.groups;
    int out[3], tap[3];
    for (int n = 0; n < dst.sizes[0]; ++n) {
      for (int o = 0; o < dst.sizes[1]; ++o) {
        for (int i = 0; i < weight.sizes[1]; ++i) {
          const int channel = o / each * weight.sizes[1] + i;
          int64_t outs = 1, taps = 1;
          for (int d = 0; d < dims; ++d) {
            outs *= dst.sizes[2 + d];
            taps *= weight.sizes[2 + d];
          }
          for (int64_t at = 0; at < outs * taps; ++at) {
            int64_t rest = at % taps, place = at / taps;
            for (int d = dims - 1; d >= 0; --d) {
              tap[d] = static_cast<int>(rest % weight.sizes[2 + d]);
              rest /= weight.sizes[2 + d];
              out[d] = static_cast<int>(place % dst.sizes[2 + d]);
              place /= dst.sizes[2 + d];
            }
            int64_t x = int64_t{n} * src.strides[0] + int64_t{channel} * src.strides[1];
            int64_t y = int64_t{n} * dst.strides[0] + int64_t{o} * dst.strides[1];
            int64_t w = o * weight_strides[0] + i * weight_strides[1];
            bool inside = true;
            for (int d = 0; d < dims; ++d) {
              const int in = out[d] * c.stride[d] - c.padding[d] + tap[d] * c.dilation[d];
              inside = inside && in >= 0 && in < src.sizes[2 + d];
              x += int64_t{in} * src.strides[2 + d];
              y += int64_t{out[d]} * dst.strides[2 + d];
              w += tap[d] * weight_strides[2 + d];
            }
            if (inside) f(x, w, y);
          }
        }
      }
    }
  }
};

int choose(void* made, int asked, int* given, void* results) {
  const int math = of<Convolution>(made).math;
  EXPECT(asked >= 2);
  auto* all = static_cast<Performance*>(results);
  all[0] = {0, 0, 1.0F, size_t{1} << 40, 0, math, {}};  // not deterministic
  all[1] = {kAlgorithm, 0, 2.0F, kWorkspace, 1, math, {}};
  *given = 2;
  return 0;
}

enum class Result { kSrc, kWeight, kDst };
int convolve(const char* function, void* handle, const Problem& p, Result result, const void* x,
             const void* w, const void* y, int algorithm, void* workspace, size_t bytes,
             const void* alpha, const void* beta) {
  EXPECT(algorithm == kAlgorithm);
  EXPECT(bytes >= kWorkspace && standin_holds(workspace, bytes));
  if (p.src.type == 1) {
    EXPECT(*static_cast<const double*>(alpha) == 1 && *static_cast<const double*>(beta) == 0);
  } else {
    EXPECT(*static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0);
  }
  p.check_memory(x, w, y);
  const bool rounds = p.src.type == 0 && p.c.math != kPlainMath;
  if (rounds) standin_enqueue("tf32", of<Handle>(handle).stream, [] { return 0; });
  return standin_enqueue(function, of<Handle>(handle).stream, [=] {
    memset(seen<char>(workspace), 0xee, bytes);
    visit(type_of(p.src.type), [&]<class T>(T*) {
      using S = std::conditional_t<std::is_same_v<T, double>, double, float>;
      if constexpr (std::is_convertible_v<T, S> && std::is_constructible_v<T, S>) {
        auto *src = seen<T>(x), *weight = seen<T>(w), *dst = seen<T>(y);
        std::vector<S> sums;
        auto add = [&](int64_t at, S value) {
          if (sums.size() <= static_cast<size_t>(at)) sums.resize(static_cast<size_t>(at) + 1);
          sums[static_cast<size_t>(at)] += value;
        };
        auto number = [](T value) { return static_cast<S>(value); };
        p.for_each([&](int64_t i, int64_t j, int64_t k) {
          if (result == Result::kSrc) add(i, number(weight[j]) * number(dst[k]));
          if (result == Result::kWeight) add(j, number(src[i]) * number(dst[k]));
          if (result == Result::kDst) add(k, number(src[i]) * number(weight[j]));
        });
        T* to = result == Result::kSrc ? src : result == Result::kWeight ? weight : dst;
        size_t all = 1;
        const int* sizes = result == Result::kSrc      ? p.src.sizes
                           : result == Result::kWeight ? p.weight.sizes
                                                       : p.dst.sizes;
        for (int d = 0; d < p.dims + 2; ++d) all *= static_cast<size_t>(sizes[d]);
        sums.resize(all);
        for (size_t i = 0; i < all; ++i) to[i] = static_cast<T>(sums[i]);
      }
    });
    return 0;
  });
}

}  // namespace
}  // namespace standin

using namespace standin;

#define STANDIN_MAKE(name, type)       \
  int cudnnCreate##name(void** made) { \
    *made = new type();                \
    return 0;                          \
  }
STANDIN_MAKE(, Handle)
STANDIN_MAKE(TensorDescriptor, Tensor)
STANDIN_MAKE(FilterDescriptor, Filter)
STANDIN_MAKE(ConvolutionDescriptor, standin::Convolution)
#define STANDIN_END(name, type)        \
  int cudnnDestroy##name(void* made) { \
    delete &of<type>(made);            \
    return 0;                          \
  }
STANDIN_END(TensorDescriptor, Tensor)
STANDIN_END(FilterDescriptor, Filter)
STANDIN_END(ConvolutionDescriptor, standin::Convolution)

int cudnnSetStream(void* handle, void* stream) {
  of<Handle>(handle).stream = stream;
  return 0;
}
int cudnnSetTensorNdDescriptor(void* made, int type, int dims, const int* sizes,
                               const int* strides) {
  auto& t = of<Tensor>(made);
  EXPECT(dims == 4 || dims == 5);
  type_of(t.type = type);
  t.dims = dims;
  for (int d = 0; d < dims; ++d) {
    EXPECT(sizes[d] > 0 && strides[d] > 0);
    t.sizes[d] = sizes[d];
    t.strides[d] = strides[d];
  }
  return 0;
}
int cudnnSetFilterNdDescriptor(void* made, int type, int format, int dims, const int* sizes) {
  auto& f = of<Filter>(made);
  EXPECT((dims == 4 || dims == 5) && (format == 0 || format == 1));
  type_of(f.type = type);
  f.format = format;
  f.dims = dims;
  for (int d = 0; d < dims; ++d) {
    EXPECT(sizes[d] > 0);
    f.sizes[d] = sizes[d];
  }
  return 0;
}
int cudnnSetConvolutionNdDescriptor(void* made, int dims, const int* padding, const int* stride,
                                    const int* dilation, int mode, int compute) {
  auto& c = of<standin::Convolution>(made);
  EXPECT((dims == 2 || dims == 3) && mode == 1 && (compute == 0 || compute == 1));
  c.dims = dims;
  c.compute = compute;
  for (int d = 0; d < dims; ++d) {
    EXPECT(padding[d] >= 0 && stride[d] > 0 && dilation[d] > 0);
    c.padding[d] = padding[d];
    c.stride[d] = stride[d];
    c.dilation[d] = dilation[d];
  }
  return 0;
}
int cudnnSetConvolutionGroupCount(void* made, int groups) {
  EXPECT(groups > 0);
  of<standin::Convolution>(made).groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(void* made, int math) {
  EXPECT(math >= 0 && math <= 3);
  of<standin::Convolution>(made).math = math;
  return 0;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void* handle, void* src, void* weight, void* made,
                                           void* dst, int asked, int* given, void* results) {
  of<Handle>(handle);
  Problem(src, weight, made, dst);
  return choose(made, asked, given, results);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void* handle, void* weight, void* dst, void* made,
                                                void* src, int asked, int* given, void* results) {
  of<Handle>(handle);
  Problem(src, weight, made, dst);
  return choose(made, asked, given, results);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void* handle, void* src, void* dst, void* made,
                                                  void* weight, int asked, int* given,
                                                  void* results) {
  of<Handle>(handle);
  Problem(src, weight, made, dst);
  return choose(made, asked, given, results);
}
int cudnnConvolutionForward(void* handle, const void* alpha, void* src_layout, const void* src,
                            void* weight_layout, const void* weight, void* made, int algorithm,
                            void* workspace, size_t bytes, const void* beta, void* dst_layout,
                            void* dst) {
  return convolve(__func__, handle, Problem(src_layout, weight_layout, made, dst_layout),
                  Result::kDst, src, weight, dst, algorithm, workspace, bytes, alpha, beta);
}
int cudnnConvolutionBackwardData(void* handle, const void* alpha, void* weight_layout,
                                 const void* weight, void* dst_layout, const void* dst, void* made,
                                 int algorithm, void* workspace, size_t bytes, const void* beta,
                                 void* src_layout, void* src) {
  return convolve(__func__, handle, Problem(src_layout, weight_layout, made, dst_layout),
                  Result::kSrc, src, weight, dst, algorithm, workspace, bytes, alpha, beta);
}
int cudnnConvolutionBackwardFilter(void* handle, const void* alpha, void* src_layout,
                                   const void* src, void* dst_layout, const void* dst, void* made,
                                   int algorithm, void* workspace, size_t bytes, const void* beta,
                                   void* weight_layout, void* weight) {
  return convolve(__func__, handle, Problem(src_layout, weight_layout, made, dst_layout),
                  Result::kWeight, src, weight, dst, algorithm, workspace, bytes, alpha, beta);
}
