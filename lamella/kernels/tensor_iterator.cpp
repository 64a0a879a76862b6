// TensorIterator: the short paths, facts, and the walk over the elements.
#include "lamella/kernels/tensor_iterator.h"

#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/strided_walk.h"
#include "lamella/kernels/tensor_iterator_heap.h"

namespace lamella {
namespace {

constexpr uint8_t kCpuDevice = static_cast<uint8_t>(DeviceType::CPU);

// A dense row-major tensor on the CPU.
LAMELLA_ALWAYS_INLINE bool is_plain(const lamella_tensor* t) {
  return (t->flags & (LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_WRAPPED_NUMBER)) ==
             LAMELLA_TENSOR_CONTIGUOUS &&
         t->device_type == kCpuDevice && t->layout == 0;
}
LAMELLA_ALWAYS_INLINE bool same_sizes(const lamella_tensor* a, const lamella_tensor* b) {
  if (a->ndim != b->ndim || a->numel != b->numel) return false;
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (a->sizes[d] != b->sizes[d]) return false;
  }
  return true;
}
// The dtype of an output that is made.
LAMELLA_ALWAYS_INLINE ScalarType made_dtype(ScalarType common, uint32_t flags) {
  using It = TensorIteratorBase;
  constexpr uint32_t kOther = It::kBoolOutput | It::kRealOutput | It::kComplexOutput;
  if (LAMELLA_LIKELY((flags & kOther) == 0)) return common;
  if (flags & It::kBoolOutput) return ScalarType::Bool;
  return flags & It::kRealOutput ? to_real_type(common) : to_complex_type(common);
}

constexpr const char* kUnaryNames[] = {"self"};
constexpr const char* kBinaryNames[] = {"self", "other"};
constexpr const char* kWhereNames[] = {"condition", "self", "other"};

}  // namespace

bool TensorIteratorBase::simple_output(const lamella_tensor* like, ScalarType dtype) {
  if (LAMELLA_LIKELY(output_mode() == OutputMode::kFunctional)) {
    TensorBase made = make_empty({like->sizes, static_cast<size_t>(like->ndim)}, dtype, kCPU);
    operand_[0] = made.impl();
    set_output_tensor(0, std::move(made));
  } else {
    lamella_tensor* out = maybe_get_output(0).impl();
    if (static_cast<ScalarType>(out->scalar_type) != dtype || !is_plain(out) ||
        !same_sizes(out, like)) {
      return false;
    }
    // Writing to memory that an operand shares is safe only if the elements are the same.
    for (int i = 1; i < ntensors_; ++i) {
      lamella_tensor* in = operand_[i];
      if (in != nullptr && in != out && in->storage == out->storage && in->data != out->data) {
        return false;
      }
    }
    operand_[0] = out;
  }
  data_[0] = static_cast<char*>(operand_[0]->data);
  dtype_[0] = dtype;
  device_type_ = DeviceType::CPU;
  noutputs_ = 1;
  uniform_ = native::loop_type(common_dtype_) == common_dtype_;
  numel_ = like->numel;
  simple_ = true;
  shape_ = nullptr;
  return true;
}

void TensorIteratorBase::build_unary(const TensorBase& a, uint32_t flags) {
  const lamella_tensor* x = a.impl();
  if (LAMELLA_LIKELY(x != nullptr && is_plain(x))) {
    auto common = static_cast<ScalarType>(x->scalar_type);
    if (LAMELLA_LIKELY((flags & kIntegersToFloat) == 0 || !is_integral(common, true))) {
      ntensors_ = 2;
      operand_[1] = a.impl();
      data_[1] = static_cast<char*>(x->data);
      dtype_[1] = common_dtype_ = common;
      if (LAMELLA_LIKELY(simple_output(x, made_dtype(common, flags)))) return;
    }
  }
  const TensorBase* inputs[] = {&a};
  build_pointwise(inputs, 1, kUnaryNames, flags);
}

void TensorIteratorBase::build_binary(const TensorBase& a, const TensorBase& b, uint32_t flags,
                                      const char* const* names) {
  const lamella_tensor* x = a.impl();
  const lamella_tensor* y = b.impl();
  if (LAMELLA_LIKELY(x != nullptr && y != nullptr && is_plain(x) && is_plain(y) &&
                     x->scalar_type == y->scalar_type && same_sizes(x, y))) {
    auto common = static_cast<ScalarType>(x->scalar_type);
    if (LAMELLA_LIKELY((flags & kIntegersToFloat) == 0 || !is_integral(common, true))) {
      ntensors_ = 3;
      operand_[1] = a.impl();
      operand_[2] = b.impl();
      data_[1] = static_cast<char*>(x->data);
      data_[2] = static_cast<char*>(y->data);
      dtype_[1] = dtype_[2] = common_dtype_ = common;
      if (LAMELLA_LIKELY(simple_output(x, made_dtype(common, flags)))) return;
    }
  }
  const TensorBase* inputs[] = {&a, &b};
  build_pointwise(inputs, 2, names != nullptr ? names : kBinaryNames, flags);
}

namespace {
// Numbers are converted to the operation's dtype like an int64 or float64 tensor: integers wrap,
// and numbers too large for a smaller floating-point type become infinite.
template <class T>
void store_number(const Scalar& number, void* to) {
  if constexpr (is_complex_type_v<T>) {
    using R = typename T::value_type;
    auto z = number.toComplexDouble();
    *static_cast<T*>(to) = T(static_cast<R>(z.real()), static_cast<R>(z.imag()));
  } else if constexpr (std::is_same_v<T, bool>) {
    *static_cast<T*>(to) = number.toBool();
  } else if (number.isIntegral(true)) {
    *static_cast<T*>(to) = static_cast<T>(number.toLong());
  } else if constexpr (!std::is_integral_v<T>) {
    *static_cast<T*>(to) = static_cast<T>(number.toDouble());
  } else {
    *static_cast<T*>(to) = number.to<T>();
  }
}
// The number rounded to a smaller floating-point type.
Scalar rounded(const Scalar& number, ScalarType type) {
  const auto value = static_cast<float>(number.toDouble());
  return Scalar(type == ScalarType::Half ? static_cast<float>(Half(value))
                                         : static_cast<float>(BFloat16(value)));
}
}  // namespace

void TensorIteratorBase::build_with_number(const TensorBase& a, const Scalar& number,
                                           uint32_t flags, bool reversed) {
  LAMELLA_CHECK(a.defined(), op_name(), ": expected 'self' to be a tensor, got an undefined one");
  // Usually the number's category is not above the tensor's.
  ScalarType common = a.dtype();
  bool absorbs = is_floating_point(common) ? !number.isComplex()
                                           : is_integral(common, false) && number.isIntegral(true);
  if (!absorbs) common = native::result_type(a, number);
  if ((flags & kIntegersToFloat) && is_integral(common, true)) common = get_default_dtype();
  // The loop's type holds the number: float for the small ones.
  ScalarType stored = native::loop_type(common);
  // Comparisons round the number to the tensor's own type first.
  const bool rounds =
      (flags & kBoolOutput) && (common == ScalarType::Half || common == ScalarType::BFloat16);
  const Scalar held = rounds ? rounded(number, common) : number;
  switch (stored) {
#define LAMELLA_SCALAR_TYPE(type, name, code, text, ...) \
  case ScalarType::name:                                 \
    store_number<type>(held, number_);                   \
    break;
#include "lamella/core/scalar_type.def"
    default:
      break;
  }
  int at = reversed ? 1 : 2, other = 3 - at;
  const lamella_tensor* x = a.impl();
  if (LAMELLA_LIKELY(is_plain(x) && static_cast<ScalarType>(x->scalar_type) == common)) {
    ntensors_ = 3;
    operand_[other] = a.impl();
    operand_[at] = nullptr;
    data_[other] = static_cast<char*>(x->data);
    data_[at] = number_;
    dtype_[other] = common_dtype_ = common;
    dtype_[at] = stored;
    if (LAMELLA_LIKELY(simple_output(x, made_dtype(common, flags)))) {
      return;
    }
  }
  const TensorBase* inputs[] = {&a};
  build_pointwise(inputs, 1, kUnaryNames, flags, common);
  add_number(at, stored);
}

void TensorIteratorBase::build_ternary(const TensorBase& a, const TensorBase& b,
                                       const TensorBase& c, const char* const* names,
                                       uint32_t flags) {
  const lamella_tensor* x = a.impl();
  const lamella_tensor* y = b.impl();
  const lamella_tensor* z = c.impl();
  if (LAMELLA_LIKELY(x != nullptr && y != nullptr && z != nullptr && is_plain(x) && is_plain(y) &&
                     is_plain(z) && x->scalar_type == y->scalar_type &&
                     x->scalar_type == z->scalar_type && same_sizes(x, y) && same_sizes(x, z))) {
    auto common = static_cast<ScalarType>(x->scalar_type);
    if ((flags & kIntegersToFloat) == 0 || !is_integral(common, true)) {
      ntensors_ = 4;
      operand_[1] = a.impl();
      operand_[2] = b.impl();
      operand_[3] = c.impl();
      for (int i = 1; i < 4; ++i) {
        data_[i] = static_cast<char*>(operand_[i]->data);
        dtype_[i] = common;
      }
      common_dtype_ = common;
      if (simple_output(x, made_dtype(common, flags))) return;
    }
  }
  const TensorBase* inputs[] = {&a, &b, &c};
  build_pointwise(inputs, 3, names, flags);
}

void TensorIteratorBase::build_where(const TensorBase& condition, const TensorBase& a,
                                     const TensorBase& b) {
  const TensorBase* inputs[] = {&condition, &a, &b};
  build_pointwise(inputs, 3, kWhereNames, kPointwise | kFirstIsCondition,
                  native::result_type(a, b));
}

void TensorIteratorBase::build_pointwise(const TensorBase* const* inputs, int count,
                                         const char* const* names, uint32_t flags,
                                         ScalarType common) {
  BuildArguments arguments;
  const char* output_names[] = {output_name(0)};
  arguments.operands[0] =
      output_mode() == OutputMode::kFunctional ? nullptr : maybe_get_output(0).impl();
  for (int i = 0; i < count; ++i) {
    LAMELLA_CHECK(inputs[i]->defined(), op_name(), ": expected '", names[i],
                  "' to be a tensor, got an undefined one");
    arguments.operands[i + 1] = inputs[i]->impl();
  }
  arguments.count = count + 1;
  arguments.outputs = 1;
  arguments.op = op_name();
  arguments.output_names = output_names;
  arguments.input_names = names;
  arguments.flags = flags;
  arguments.common = common;
  arguments.static_dtype = ScalarType::Undefined;
  arguments.static_shape = nullptr;
  arguments.structured = true;
  build_general(arguments);
}

void TensorIteratorBase::release_heap() { delete heap_; }

// ---- Facts -------------------------------------------------------------------------------------

std::vector<int64_t> TensorIteratorBase::strides(int arg) const {
  std::vector<int64_t> result;
  for (int d = 0; d < ndim(); ++d) result.push_back(stride(arg, d));
  return result;
}

Device TensorIteratorBase::device(int arg) const {
  const lamella_tensor* t = operand_[arg];
  if (t == nullptr) return device_type_;
  return Device(static_cast<DeviceType>(t->device_type), t->device_index);
}

bool TensorIteratorBase::is_cpu_scalar(int arg) const {
  return is_scalar(arg) && (operand_[arg] == nullptr || operand_[arg]->device_type == kCpuDevice);
}

bool TensorIteratorBase::is_contiguous() const {
  if (numel_ == 1) return true;
  if (ndim() != 1) return false;
  for (int i = 0; i < ntensors_; ++i) {
    if (strides_[i] != element_size(i)) return false;
  }
  return true;
}

bool TensorIteratorBase::is_dim_reduced(int dim) const {
  settle();
  for (int i = 0; i < noutputs_; ++i) {
    if (stride(i, dim) == 0 && shape_[dim] > 1) return true;
  }
  return false;
}

// ---- Walking -----------------------------------------------------------------------------------

void TensorIteratorBase::for_each_erased(Loop2d loop, void* context, int64_t grain) {
  if (numel_ == 0) return;
  if (numel_ <= grain || in_parallel_region()) {
    serial_erased(loop, context, 0, numel_);
    return;
  }
  native::parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) {
    serial_erased(loop, context, begin, end);
  });
}

void TensorIteratorBase::serial_erased(Loop2d loop, void* context, int64_t begin,
                                       int64_t end) const {
  settle();
  native::walk_planes(static_cast<int>(ntensors_), ndim_, shape_, strides_, data_, begin, end,
                      [&](char** data, const int64_t* strides, int64_t size0, int64_t size1) {
                        loop(context, data, strides, size0, size1);
                      });
}

}  // namespace lamella
