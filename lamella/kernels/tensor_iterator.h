// TensorIterator: broadcasts the operands of a pointwise operator and iterates over them together.
//
// Note [The life of an iterator]
//   Building one promotes dtypes, broadcasts, checks overlaps, makes or checks the outputs, orders
//   the dimensions by strides and merges adjacent ones. If all operands have one dtype, one shape
//   and dense memory of one order, none of that is needed: this short path takes a few nanoseconds
//   and determines the operators' speed on small tensors. A kernel then calls for_each(), or passes
//   the iterator to run_pointwise().
//
// Note [Lazy casts]
//   The library's own kernels convert operands of another dtype chunk by chunk while they compute.
//   A kernel that walks the iterator itself needs them in memory: an iterator built by
//   TensorIteratorConfig therefore replaces such inputs by converted temporaries, as well as such
//   outputs, which cast_outputs() copies back.
#pragma once
#include <type_traits>
#include <vector>

#include "lamella/api/meta_base.h"
#include "lamella/kernels/parallel.h"
#include "lamella/kernels/pointwise_loop.h"
#include "lamella/kernels/type_promotion.h"

namespace lamella {

class TensorIteratorConfig;

class TensorIteratorBase : public MetaBase {
 public:
  static constexpr int kMaxOperands = 8;
  static constexpr int kInlineDims = 6;
  static constexpr int kInlineOperands = 4;

  // The steps of a build beyond broadcasting.
  enum Flags : uint32_t {
    kCheckOverlap = 1u << 0,
    kCheckSameDtype = 1u << 1,
    kPromoteInputs = 1u << 2,    // inputs meet in a common dtype
    kIntegersToFloat = 1u << 3,  // which is floating point
    kSafeCast = 1u << 4,         // the result type must be castable to a given output's
    kResizeOutputs = 1u << 5,
    kAllowCpuScalars = 1u << 6,  // tensors without dimensions on the CPU beside another device
    kLinear = 1u << 7,           // keep row-major order
    kReduction = 1u << 8,        // outputs may be smaller, with stride 0
    kBoolOutput = 1u << 9,       // an output that is made is bool
    kRealOutput = 1u << 10,      // an output that is made holds parts of complex numbers
    kComplexOutput = 1u << 11,
    kCheckSameDevice = 1u << 12,
    kEagerInputs = 1u << 13,  // Note [Lazy casts]
    kEagerOutputs = 1u << 14,
    kFirstIsCondition = 1u << 15,  // the first input takes no part in promotion
    kPointwise = kCheckOverlap | kPromoteInputs | kSafeCast | kResizeOutputs | kAllowCpuScalars |
                 kCheckSameDevice,
    kPointwiseFloat = kPointwise | kIntegersToFloat,
    kComparison = kPointwise | kBoolOutput,
  };

  TensorIteratorBase() = default;
  ~TensorIteratorBase() {
    if (LAMELLA_UNLIKELY(heap_ != nullptr)) release_heap();
  }

  // ---- For meta functions of structured kernels. `out` is maybe_get_output(). ----

  void build_unary(const TensorBase& a, uint32_t flags);
  // `names`: what messages call the operands; null: 'self' and 'other'.
  void build_binary(const TensorBase& a, const TensorBase& b, uint32_t flags,
                    const char* const* names = nullptr);
  // The second operand is a number: it takes part in promotion as such and is read by the kernels
  // as a tensor without dimensions. `reversed` puts it first.
  void build_with_number(const TensorBase& a, const Scalar& number, uint32_t flags,
                         bool reversed = false);
  void build_ternary(const TensorBase& a, const TensorBase& b, const TensorBase& c,
                     const char* const* names, uint32_t flags);
  // The first operand is a condition: it takes no part in promotion.
  void build_where(const TensorBase& condition, const TensorBase& a, const TensorBase& b);
  // The general form: inputs in order, names as messages call them.
  void build_pointwise(const TensorBase* const* inputs, int count, const char* const* names,
                       uint32_t flags, ScalarType common = ScalarType::Undefined);

  // ---- Facts ----

  int ndim() const {
    settle();
    return ndim_;
  }
  // Innermost dimension first, merged.
  IntArrayRef shape() const {
    settle();
    return {shape_, static_cast<size_t>(ndim_)};
  }
  int64_t numel() const { return numel_; }
  int ntensors() const { return ntensors_; }
  int noutputs() const { return noutputs_; }
  int ninputs() const { return ntensors_ - noutputs_; }
  // The operand's stride, in bytes, along a dimension of shape().
  int64_t stride(int arg, int dim) const {
    settle();
    return strides_[dim * ntensors_ + arg];
  }
  std::vector<int64_t> strides(int arg) const;
  void* data_ptr(int arg) const { return data_[arg]; }
  ScalarType dtype(int arg = 0) const { return dtype_[arg]; }
  ScalarType input_dtype(int arg = 0) const { return dtype_[noutputs_ + arg]; }
  // The dtype to compute in. Undefined if the inputs keep their own.
  ScalarType common_dtype() const { return common_dtype_; }
  DeviceType device_type(int = 0) const { return device_type_; }
  Device device(int arg = 0) const;
  int64_t element_size(int arg) const {
    return static_cast<int64_t>(lamella::element_size(dtype_[arg]));
  }
  bool is_scalar(int arg) const { return operand_[arg] == nullptr || operand_[arg]->numel == 1; }
  bool is_cpu_scalar(int arg) const;
  // The tensor itself; in an eager iterator the one that is read and written.
  const TensorBase& tensor_base(int arg) const {
    return reinterpret_cast<const TensorBase&>(operand_[arg]);
  }
  const Tensor& tensor(int arg) const { return reinterpret_cast<const Tensor&>(operand_[arg]); }
  const Tensor& output(int arg = 0) const { return tensor(arg); }
  const Tensor& input(int arg = 0) const { return tensor(noutputs_ + arg); }
  // Every operand is dense in one order: one run of numel() elements.
  bool is_trivial_1d() const { return ndim() <= 1; }
  // Built by a short path: each operand is one run of the same elements, or the number of
  // build_with_number.
  bool is_simple() const { return simple_; }
  // The operand that is a number; -1: none.
  int number_at() const {
    return operand_[ntensors_ - 1] == nullptr ? ntensors_ - 1 : operand_[1] == nullptr ? 1 : -1;
  }
  // Where the operands begin, outputs first.
  char* const* data_ptrs() const { return data_; }
  bool is_contiguous() const;
  // All inputs have the common dtype.
  bool uniform_inputs() const { return uniform_; }
  // Whether the output is written along `dim` of shape() more than once.
  bool is_dim_reduced(int dim) const;
  template <class T>
  T scalar_value(int arg) const {
    return *static_cast<const T*>(data_ptr(arg));
  }
  // Copies outputs that were replaced by temporaries back.
  void cast_outputs();

  // ---- Walking ----

  using Loop2d = void (*)(void* context, char** data, const int64_t* strides, int64_t size0,
                          int64_t size1);
  static constexpr int64_t kGrain = native::kGrainSize;

  // loop(char** data, const int64_t* strides, int64_t size0, int64_t size1): strides of the inner
  // dimension for each operand, then of the outer; or loop(data, strides, size) for single runs.
  // Parts of the work may run on other threads.
  template <class F>
  void for_each(F&& loop, int64_t grain = kGrain) {
    Erased<std::remove_reference_t<F>> erased{&loop, ntensors_};
    for_each_erased(&decltype(erased)::call, &erased, grain);
  }
  // Elements [begin, end) of the merged shape, on this thread.
  template <class F>
  void serial_for_each(F&& loop, int64_t begin, int64_t end) const {
    Erased<std::remove_reference_t<F>> erased{&loop, ntensors_};
    serial_erased(&decltype(erased)::call, &erased, begin, end);
  }
  void for_each_erased(Loop2d loop, void* context, int64_t grain);
  void serial_erased(Loop2d loop, void* context, int64_t begin, int64_t end) const;

 protected:
  struct Heap;
  friend class TensorIteratorConfig;

  struct BuildArguments {
    lamella_tensor* operands[kMaxOperands];  // outputs first, NULL: to be made
    int count;
    int outputs;
    const char* op;
    const char* const* output_names;
    const char* const* input_names;
    uint32_t flags;
    ScalarType common;        // Undefined: by promotion
    ScalarType static_dtype;  // of outputs that are made; Undefined: the common one
    const IntArrayRef* static_shape;
    Device device = kCPU;  // of outputs where no operand says
    bool structured;       // outputs belong to MetaBase
  };
  void build_general(const BuildArguments& arguments);
  // Computes the shape and strides of a simple iterator, which are not stored until needed.
  void settle() const {
    if (LAMELLA_LIKELY(!simple_ || shape_ != nullptr)) return;
    const_cast<TensorIteratorBase*>(this)->set_run(numel_);
  }
  void make_room(int ndim, int count);
  void set_run(int64_t numel);
  // Inserts the operand `number_` after the general build.
  void add_number(int at, ScalarType stored);
  // The output of the short paths: like `like`, of `dtype`. False: not simple.
  bool simple_output(const lamella_tensor* like, ScalarType dtype);
  Heap& heap();
  void release_heap();

  template <class F>
  struct Erased {
    F* loop;
    int count;
    static void call(void* context, char** data, const int64_t* strides, int64_t size0,
                     int64_t size1) {
      auto* self = static_cast<Erased*>(context);
      if constexpr (std::is_invocable_v<F&, char**, const int64_t*, int64_t, int64_t>) {
        (*self->loop)(data, strides, size0, size1);
      } else {
        char* row[kMaxOperands];
        for (int i = 0; i < self->count; ++i) row[i] = data[i];
        for (int64_t j = 0; j < size1; ++j) {
          (*self->loop)(row, strides, size0);
          for (int i = 0; i < self->count; ++i) row[i] += strides[self->count + i];
        }
      }
    }
  };

  lamella_tensor* operand_[kMaxOperands];  // NULL: the number of build_with_number
  char* data_[kMaxOperands];
  ScalarType dtype_[kMaxOperands];
  ScalarType common_dtype_;
  DeviceType device_type_;
  int8_t ntensors_;
  int8_t noutputs_;
  bool uniform_;
  bool simple_;
  int ndim_;
  int64_t numel_;
  int64_t* shape_;
  int64_t* strides_;  // [dimension][operand]
  Heap* heap_ = nullptr;
  alignas(16) char number_[16];
  int64_t inline_shape_[kInlineDims];
  int64_t inline_strides_[kInlineDims * kInlineOperands];
};

// An iterator outside of structured kernels. Made by TensorIteratorConfig
// (tensor_iterator_config.h) or one of the functions below, which promote like operators of that
// kind; an undefined output is made, see output().
class TensorIterator : public TensorIteratorBase {
 public:
  TensorIterator() = default;
  TensorIterator(TensorIterator&& other) noexcept;

  static TensorIterator binary_op(TensorBase& out, const TensorBase& a, const TensorBase& b);
  static TensorIterator binary_float_op(TensorBase& out, const TensorBase& a, const TensorBase& b);
  static TensorIterator comparison_op(TensorBase& out, const TensorBase& a, const TensorBase& b);
  static TensorIterator unary_op(TensorBase& out, const TensorBase& a);
  static TensorIterator unary_float_op(TensorBase& out, const TensorBase& a);
  static TensorIterator nullary_op(TensorBase& out);
  static TensorIterator reduce_op(TensorBase& out, const TensorBase& a);
};

}  // namespace lamella
