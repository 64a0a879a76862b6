// The options of modules and functions of lamella::nn: words such as kMean, one size for each
// dimension, and structures whose fields have a getter and a setter of the same name.
#pragma once
#include <array>
#include <concepts>
#include <utility>

#include "lamella/api/functions.h"
#include "lamella/dispatch/dispatcher.h"

// A field with a getter and a setter; the setter returns the structure, so that calls chain.
#define LAMELLA_OPTION(T, name)                            \
 public:                                                   \
  template <int = 0>                                       \
  auto name(const T& new_##name) -> decltype(*this) {      \
    this->name##_ = new_##name;                            \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_

namespace lamella::nn {

// One of the words below, such as kMean.
struct Word {
  const char* text;
  bool operator==(const Word& other) const {
    return std::string_view(text) == std::string_view(other.text);
  }
};
inline void append(std::string& out, const Word& word) { out += word.text; }
// Each word has a class of its own, by which std::variant tells them apart.
#define LAMELLA_WORD(name, text)                       \
  namespace enumtype {                                 \
  struct name : Word {                                 \
    static constexpr const char* kName = #name;        \
    constexpr name() : Word{text} {}                   \
  };                                                   \
  }                                                    \
  namespace words {                                    \
  LAMELLA_HIDDEN inline constexpr enumtype::name name; \
  }
LAMELLA_WORD(kNone, "none")
LAMELLA_WORD(kMean, "mean")
LAMELLA_WORD(kSum, "sum")
LAMELLA_WORD(kMax, "max")
LAMELLA_WORD(kBatchMean, "batchmean")
LAMELLA_WORD(kConstant, "constant")
LAMELLA_WORD(kReflect, "reflect")
LAMELLA_WORD(kReplicate, "replicate")
LAMELLA_WORD(kCircular, "circular")
LAMELLA_WORD(kZeros, "zeros")
LAMELLA_WORD(kBorder, "border")
LAMELLA_WORD(kReflection, "reflection")
LAMELLA_WORD(kNearest, "nearest")
LAMELLA_WORD(kNearestExact, "nearest-exact")
LAMELLA_WORD(kLinear, "linear")
LAMELLA_WORD(kBilinear, "bilinear")
LAMELLA_WORD(kBicubic, "bicubic")
LAMELLA_WORD(kTrilinear, "trilinear")
LAMELLA_WORD(kArea, "area")
LAMELLA_WORD(kSame, "same")
LAMELLA_WORD(kValid, "valid")
LAMELLA_WORD(kFanIn, "fan_in")
LAMELLA_WORD(kFanOut, "fan_out")
LAMELLA_WORD(kConv1D, "conv1d")
LAMELLA_WORD(kConv2D, "conv2d")
LAMELLA_WORD(kConv3D, "conv3d")
LAMELLA_WORD(kSigmoid, "sigmoid")
LAMELLA_WORD(kTanh, "tanh")
LAMELLA_WORD(kReLU, "relu")
LAMELLA_WORD(kGELU, "gelu")
LAMELLA_WORD(kLeakyReLU, "leaky_relu")
LAMELLA_WORD(kConvTranspose1D, "conv_transpose1d")
LAMELLA_WORD(kConvTranspose2D, "conv_transpose2d")
LAMELLA_WORD(kConvTranspose3D, "conv_transpose3d")
LAMELLA_WORD(kRNN_TANH, "rnn_tanh")
LAMELLA_WORD(kRNN_RELU, "rnn_relu")
LAMELLA_WORD(kLSTM, "lstm")
LAMELLA_WORD(kGRU, "gru")
#undef LAMELLA_WORD
using namespace words;
namespace enumtype {
// The name of the word that a std::variant of such classes holds, "kReLU".
template <class Variant>
std::string get_enum_name(const Variant& word) {
  return visit([](const auto& held) { return std::string(held.kName); }, word);
}
}  // namespace enumtype

// A number for each of D dimensions; a single number applies to all.
template <class T, size_t D>
class EachOf {
 public:
  EachOf(T number) { numbers_.fill(number); }                           // NOLINT: implicit
  EachOf(std::initializer_list<T> list) : EachOf(ArrayRef<T>(list)) {}  // NOLINT
  EachOf(const std::vector<T>& list) : EachOf(ArrayRef<T>(list)) {}     // NOLINT
  EachOf(const std::array<T, D>& list) : numbers_(list) {}              // NOLINT
  EachOf(ArrayRef<T> list) {                                            // NOLINT
    LAMELLA_CHECK_VALUE(list.size() == D, "nn: expected ", D, " numbers, got ", list.size(), ", ",
                        list);
    for (size_t i = 0; i < D; ++i) numbers_[i] = list[i];
  }
  operator ArrayRef<T>() const { return {numbers_.data(), D}; }  // NOLINT
  std::array<T, D>& operator*() { return numbers_; }
  const std::array<T, D>& operator*() const { return numbers_; }
  std::array<T, D>* operator->() { return &numbers_; }
  const std::array<T, D>* operator->() const { return &numbers_; }
  T operator[](size_t i) const { return numbers_[i]; }
  size_t size() const { return D; }

 private:
  std::array<T, D> numbers_;
};
template <size_t D>
using Each = EachOf<int64_t, D>;
// A number, a list or a span: what Each<D> is made of.
template <class T, size_t D>
concept MakesEach = std::convertible_to<T, Each<D>> && !std::same_as<T, Each<D>>;

// Constructors of Name from a number, a list or a span, with its initializers.
#define LAMELLA_FROM_EACH(Name, D, ...)                              \
  Name(Each<D> each) : __VA_ARGS__ {}                                \
  Name(std::initializer_list<int64_t> list) : Name(Each<D>(list)) {} \
  template <MakesEach<D> I>                                          \
  Name(const I& list) : Name(Each<D>(list)) {}

// Numbers, kSame or kValid.
template <size_t D>
class Padding {
 public:
  Padding(int64_t number) : numbers_(number) {}                     // NOLINT: implicit
  Padding(std::initializer_list<int64_t> list) : numbers_(list) {}  // NOLINT
  Padding(const std::vector<int64_t>& list) : numbers_(list) {}     // NOLINT
  Padding(IntArrayRef list) : numbers_(list) {}                     // NOLINT
  Padding(Each<D> numbers) : numbers_(numbers) {}                   // NOLINT
  Padding(Word word) : numbers_(0), word_(word.text) {}             // NOLINT
  const Each<D>& numbers() const { return numbers_; }
  const char* word() const { return word_; }  // null for numbers

 private:
  Each<D> numbers_;
  const char* word_ = nullptr;
};

namespace detail {
// The reduction's number, as operators take it.
LAMELLA_LAZY int64_t reduction(const char* op, Word word) {
  if (word == kNone) return 0;
  if (word == kMean) return 1;
  LAMELLA_CHECK_VALUE(word == kSum, op, ": expected 'reduction' to be none, mean or sum, got ",
                      word);
  return 2;
}
// nullopt for an undefined tensor.
LAMELLA_LAZY std::optional<Tensor> maybe(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}
// Looks an operator up by name.
template <class R, class... A>
TypedOperatorHandle<R(A...)> find(const char* name) {
  return Dispatcher::singleton().findSchemaOrThrow(name, "").template typed<R(A...)>();
}
}  // namespace detail

// ---- Options -----------------------------------------------------------------------------------

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  LAMELLA_OPTION(int64_t, in_features);
  LAMELLA_OPTION(int64_t, out_features);
  LAMELLA_OPTION(bool, bias) = true;
};
struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  LAMELLA_OPTION(int64_t, in1_features);
  LAMELLA_OPTION(int64_t, in2_features);
  LAMELLA_OPTION(int64_t, out_features);
  LAMELLA_OPTION(bool, bias) = true;
};

template <size_t D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, Each<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  LAMELLA_OPTION(int64_t, in_channels);
  LAMELLA_OPTION(int64_t, out_channels);
  LAMELLA_OPTION(Each<D>, kernel_size);
  LAMELLA_OPTION(Each<D>, stride) = 1;
  LAMELLA_OPTION(Padding<D>, padding) = 0;
  LAMELLA_OPTION(Each<D>, output_padding) = 0;  // only for transposed convolutions
  LAMELLA_OPTION(Each<D>, dilation) = 1;
  LAMELLA_OPTION(int64_t, groups) = 1;
  LAMELLA_OPTION(bool, bias) = true;
  LAMELLA_OPTION(Word, padding_mode) = kZeros;
};

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, num_features);
  LAMELLA_OPTION(double, eps) = 1e-5;
  LAMELLA_OPTION(std::optional<double>, momentum) = 0.1;  // nullopt: the mean of all batches
  LAMELLA_OPTION(bool, affine) = true;
  LAMELLA_OPTION(bool, track_running_stats) = true;
};

struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, num_features);
  LAMELLA_OPTION(double, eps) = 1e-5;
  LAMELLA_OPTION(double, momentum) = 0.1;
  LAMELLA_OPTION(bool, affine) = false;
  LAMELLA_OPTION(bool, track_running_stats) = false;
};

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> shape) : normalized_shape_(std::move(shape)) {}  // NOLINT
  LAMELLA_OPTION(std::vector<int64_t>, normalized_shape);
  LAMELLA_OPTION(double, eps) = 1e-5;
  LAMELLA_OPTION(bool, elementwise_affine) = true;
};

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  LAMELLA_OPTION(int64_t, num_groups);
  LAMELLA_OPTION(int64_t, num_channels);
  LAMELLA_OPTION(double, eps) = 1e-5;
  LAMELLA_OPTION(bool, affine) = true;
};

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, p);
  LAMELLA_OPTION(bool, inplace) = false;
};

// Options with a single number or flag, as many activations have.
#define LAMELLA_ONE_OPTION(Name, T, name, value)     \
  struct Name##Options {                             \
    Name##Options(T name = value) : name##_(name) {} \
    LAMELLA_OPTION(T, name);                         \
    LAMELLA_OPTION(bool, inplace) = false;           \
  };
LAMELLA_ONE_OPTION(LeakyReLU, double, negative_slope, 0.01)
LAMELLA_ONE_OPTION(ELU, double, alpha, 1.0)
LAMELLA_ONE_OPTION(CELU, double, alpha, 1.0)
LAMELLA_ONE_OPTION(GELU, std::string, approximate, "none")
LAMELLA_ONE_OPTION(Softmax, int64_t, dim, -1)
LAMELLA_ONE_OPTION(LogSoftmax, int64_t, dim, -1)
LAMELLA_ONE_OPTION(GLU, int64_t, dim, -1)
#undef LAMELLA_ONE_OPTION
struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT: implicit
  LAMELLA_OPTION(bool, inplace);
};
struct SoftplusOptions {
  LAMELLA_OPTION(double, beta) = 1;
  LAMELLA_OPTION(double, threshold) = 20;
};
struct HardtanhOptions {
  LAMELLA_OPTION(double, min_val) = -1;
  LAMELLA_OPTION(double, max_val) = 1;
  LAMELLA_OPTION(bool, inplace) = false;
};

// Maximum and average pooling.
template <size_t D>
struct PoolOptions {
  LAMELLA_FROM_EACH(PoolOptions, D, kernel_size_(each), stride_(each))
  LAMELLA_OPTION(Each<D>, kernel_size);
  LAMELLA_OPTION(Each<D>, stride);
  LAMELLA_OPTION(Each<D>, padding) = 0;
  LAMELLA_OPTION(Each<D>, dilation) = 1;  // only for maxima
  LAMELLA_OPTION(bool, ceil_mode) = false;
  LAMELLA_OPTION(bool, count_include_pad) = true;  // only for averages
  LAMELLA_OPTION(std::optional<int64_t>, divisor_override);
};
template <size_t D>
struct AdaptivePoolOptions {
  LAMELLA_FROM_EACH(AdaptivePoolOptions, D, output_size_(each))
  // None stands for the size of the input.
  AdaptivePoolOptions(std::initializer_list<std::optional<int64_t>> sizes) : output_size_(-1) {
    LAMELLA_CHECK_VALUE(sizes.size() == D, "nn: expected ", D, " sizes, got ", sizes.size());
    for (size_t i = 0; i < D; ++i) (*output_size_)[i] = sizes.begin()[i].value_or(-1);
  }
  LAMELLA_OPTION(Each<D>, output_size);
};

struct FlattenOptions {
  LAMELLA_OPTION(int64_t, start_dim) = 1;
  LAMELLA_OPTION(int64_t, end_dim) = -1;
};

// The options of losses that have a reduction and no weight, or a weight.
struct LossOptions {
  LossOptions(Word reduction = kMean) : reduction_(reduction) {}  // NOLINT: implicit
  LAMELLA_OPTION(Word, reduction);
  LAMELLA_OPTION(Tensor, weight);
};
struct ClassLossOptions {
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(int64_t, ignore_index) = -100;
  LAMELLA_OPTION(Word, reduction) = kMean;
  LAMELLA_OPTION(double, label_smoothing) = 0;
};
struct LogitsLossOptions {
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Tensor, pos_weight);
  LAMELLA_OPTION(Word, reduction) = kMean;
};
struct SmoothLossOptions {
  SmoothLossOptions(Word reduction = kMean) : reduction_(reduction) {}  // NOLINT: implicit
  LAMELLA_OPTION(Word, reduction);
  LAMELLA_OPTION(double, beta) = 1;   // for smooth_l1_loss
  LAMELLA_OPTION(double, delta) = 1;  // for huber_loss
};
struct KLDivOptions {
  KLDivOptions(Word reduction = kMean) : reduction_(reduction) {}  // NOLINT: implicit
  LAMELLA_OPTION(Word, reduction);
  LAMELLA_OPTION(bool, log_target) = false;
};

}  // namespace lamella::nn
