// TensorIterator: the general build, in the order of its steps.
#include <utility>

#include "lamella/core/memory_overlap.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/pointwise.h"
#include "lamella/kernels/strided_walk.h"
#include "lamella/kernels/tensor_iterator_config.h"
#include "lamella/kernels/tensor_iterator_heap.h"

namespace lamella {
namespace {

constexpr int kMaxNdim = 64;

IntArrayRef sizes_of(const lamella_tensor* t) { return {t->sizes, static_cast<size_t>(t->ndim)}; }
IntArrayRef strides_of(const lamella_tensor* t) {
  return {t->strides, static_cast<size_t>(t->ndim)};
}
ScalarType type_of(const lamella_tensor* t) { return static_cast<ScalarType>(t->scalar_type); }
Device device_of(const lamella_tensor* t) {
  return Device(static_cast<DeviceType>(t->device_type), t->device_index);
}
// A view of a borrowed header as a reference.
const TensorBase& as_base(lamella_tensor* const& t) {
  return reinterpret_cast<const TensorBase&>(t);
}

struct Shape {
  int64_t sizes[kMaxNdim];
  int ndim = 0;
  IntArrayRef ref() const { return {sizes, static_cast<size_t>(ndim)}; }
};

// Widens `shape` by one operand's sizes.
void broadcast(Shape& shape, IntArrayRef sizes, const char* op, const char* name) {
  int more = static_cast<int>(sizes.size()) - shape.ndim;
  LAMELLA_CHECK(sizes.size() <= kMaxNdim, op, ": expected '", name, "' to have at most ", kMaxNdim,
                " dimensions, got ", sizes.size());
  auto fail = [&](IntArrayRef before) {
    LAMELLA_CHECK(false, op, ": expected '", name, "' to be broadcastable to ", before, ", got ",
                  sizes);
  };
  int common = more > 0 ? shape.ndim : static_cast<int>(sizes.size());
  for (int i = 1; i <= common; ++i) {
    int64_t have = shape.sizes[shape.ndim - i], size = sizes[sizes.size() - static_cast<size_t>(i)];
    if (have != size && have != 1 && size != 1) fail(shape.ref());
  }
  for (int i = 1; i <= common; ++i) {
    int64_t& have = shape.sizes[shape.ndim - i];
    if (have == 1) have = sizes[sizes.size() - static_cast<size_t>(i)];
  }
  if (more > 0) {
    for (int d = shape.ndim - 1; d >= 0; --d) shape.sizes[d + more] = shape.sizes[d];
    for (int d = 0; d < more; ++d) shape.sizes[d] = sizes[static_cast<size_t>(d)];
    shape.ndim += more;
  }
}

// Strides in bytes of one operand over the common shape; 0 where it is broadcast.
void expand_strides(const lamella_tensor* t, const Shape& shape, int64_t* strides) {
  auto bytes = static_cast<int64_t>(element_size(type_of(t)));
  int missing = shape.ndim - t->ndim;
  for (int d = 0; d < missing; ++d) strides[d] = 0;
  for (int d = 0; d < t->ndim; ++d) {
    bool expanded = t->sizes[d] == 1 && shape.sizes[missing + d] != 1;
    strides[missing + d] = expanded ? 0 : t->strides[d] * bytes;
  }
}

}  // namespace

void TensorIteratorBase::build_general(const BuildArguments& args) {
  const int n = args.count, outputs = args.outputs;
  const char* op = args.op;
  uint32_t flags = args.flags;
  ntensors_ = static_cast<int8_t>(n);
  noutputs_ = static_cast<int8_t>(outputs);
  simple_ = false;
  for (int i = 0; i < n; ++i) operand_[i] = args.operands[i];
  auto name_of = [&](int i) {
    return i < outputs ? args.output_names[i] : args.input_names[i - outputs];
  };

  // ---- Overlaps ----
  if (flags & kCheckOverlap) {
    for (int i = 0; i < outputs; ++i) {
      if (operand_[i] == nullptr) continue;
      check_no_internal_overlap(op, name_of(i), as_base(operand_[i]));
      for (int j = outputs; j < n; ++j) {
        check_no_partial_overlap(op, name_of(i), as_base(operand_[i]), name_of(j),
                                 as_base(operand_[j]));
      }
    }
  }

  // ---- Shape ----
  Shape shape;
  if (args.static_shape != nullptr) {
    broadcast(shape, *args.static_shape, op, "shape");
  } else {
    bool any = false;
    int first = (flags & kResizeOutputs) && n > outputs ? outputs : 0;
    for (int i = first; i < n; ++i) {
      if (operand_[i] == nullptr) continue;
      if (!any) {
        shape.ndim = 0;
        any = true;
      }
      broadcast(shape, sizes_of(operand_[i]), op, name_of(i));
    }
  }
  bool resized[kMaxOperands] = {};
  for (int i = 0; i < outputs; ++i) {
    if (operand_[i] == nullptr) continue;
    resized[i] = !(sizes_of(operand_[i]) == shape.ref()) && (flags & kResizeOutputs);
    for (int j = outputs; resized[i] && j < n; ++j) {
      if (operand_[j] == nullptr) continue;
      if (args.structured && may_share_memory(as_base(operand_[i]), as_base(operand_[j]))) {
        keep_apart(i);
      } else if (operand_[i] == operand_[j]) {
        resized[i] = false;
      }
    }
    LAMELLA_CHECK(resized[i] || sizes_of(operand_[i]) == shape.ref() || (flags & kReduction), op,
                  ": expected '", name_of(i), "' to have shape ", shape.ref(), ", got ",
                  sizes_of(operand_[i]));
  }

  // ---- Dtypes ----
  int promoted = outputs + ((flags & kFirstIsCondition) ? 1 : 0);
  common_dtype_ = args.common;
  if (common_dtype_ == ScalarType::Undefined) {
    native::ResultTypeState state;
    bool same = true;
    int first = n > outputs ? promoted : 0;
    for (int i = first; i < n; ++i) {
      if (operand_[i] == nullptr) continue;
      same &= type_of(operand_[i]) == type_of(operand_[first]);
      if (flags & (kPromoteInputs | kIntegersToFloat)) {
        state = native::update_result_type_state(as_base(operand_[i]), state);
      }
    }
    if (flags & (kPromoteInputs | kIntegersToFloat)) {
      common_dtype_ = native::result_type(state);
    } else if (same && operand_[first] != nullptr) {
      common_dtype_ = type_of(operand_[first]);
    }
    if ((flags & kIntegersToFloat) && is_integral(common_dtype_, true)) {
      common_dtype_ = get_default_dtype();
    }
  }
  if (flags & kCheckSameDtype) {
    const lamella_tensor* first = nullptr;
    for (int i = 0; i < n; ++i) {
      if (operand_[i] == nullptr) continue;
      if (first == nullptr) first = operand_[i];
      LAMELLA_CHECK(type_of(operand_[i]) == type_of(first), op, ": expected '", name_of(i),
                    "' to have dtype ", type_of(first), ", got ", type_of(operand_[i]));
    }
  }
  ScalarType made = args.static_dtype != ScalarType::Undefined ? args.static_dtype
                    : (flags & kBoolOutput)                    ? ScalarType::Bool
                    : (flags & kRealOutput)                    ? to_real_type(common_dtype_)
                    : (flags & kComplexOutput)                 ? to_complex_type(common_dtype_)
                                                               : common_dtype_;
  if (flags & kSafeCast) {
    for (int i = 0; i < outputs; ++i) {
      if (operand_[i] == nullptr) continue;
      ScalarType given = type_of(operand_[i]);
      LAMELLA_CHECK(can_cast(made, given), op, ": expected '", name_of(i),
                    "' to have a dtype that the result's, ", made, ", can be cast to, got ", given);
    }
  }

  // ---- Device ----
  Device device = args.device;
  const char* device_name = nullptr;
  for (int i = 0; i < n; ++i) {
    const lamella_tensor* t = operand_[i];
    if (t == nullptr) continue;
    bool cpu_number =
        (flags & kAllowCpuScalars) && i >= outputs && t->ndim == 0 && device_of(t).is_cpu();
    if (cpu_number) continue;
    if (device_name == nullptr) {
      device = device_of(t);
      device_name = name_of(i);
    } else if (flags & kCheckSameDevice) {
      LAMELLA_CHECK(device_of(t) == device, op, ": expected '", name_of(i), "' to be on ", device,
                    " like '", device_name, "', got ", device_of(t));
    }
  }
  device_type_ = device.type();

  // ---- Temporaries of an eager iterator ----
  // Comparisons in a smaller floating-point type round numbers to it first.
  const bool rounds =
      (flags & kBoolOutput) && device.is_cpu() && native::loop_type(common_dtype_) != common_dtype_;
  if (((flags & kEagerInputs) || rounds) && (flags & kPromoteInputs)) {
    for (int i = promoted; i < n; ++i) {
      if (type_of(operand_[i]) == common_dtype_) continue;
      LAMELLA_CHECK_NOT_IMPLEMENTED(
          !device.is_cpu() || native::loop_index(type_of(operand_[i])) >= 0, op,
          ": expected a dtype with arithmetic, got ", type_of(operand_[i]));
      TensorBase converted = make_empty_like(as_base(operand_[i]), common_dtype_, device);
      if (device.is_cpu()) native::copy_converted(converted, as_base(operand_[i]));
      operand_[i] = converted.impl();
      heap().owned.push_back(std::move(converted));
    }
  }

  // ---- Order of dimensions ----
  // If all given operands have the same dense layout, outputs get it too, and there is a single
  // run.
  const lamella_tensor* like = nullptr;
  bool alike = !(flags & (kReduction | kLinear)), contiguous = !(flags & kReduction);
  for (int i = 0; i < n; ++i) {
    const lamella_tensor* t = operand_[i];
    if (t == nullptr || resized[i]) continue;
    if (!(sizes_of(t) == shape.ref())) {
      alike = contiguous = false;
      break;
    }
    contiguous = contiguous && (t->flags & LAMELLA_TENSOR_CONTIGUOUS);
    if (like == nullptr) like = t;
    alike = alike && (t->flags & LAMELLA_TENSOR_DENSE) && strides_of(t) == strides_of(like);
  }
  alike = alike && like != nullptr;
  bool one_run = alike || contiguous;

  int64_t strides[kMaxOperands][kMaxNdim];
  int perm[kMaxNdim];  // innermost first
  for (int d = 0; d < shape.ndim; ++d) perm[d] = shape.ndim - 1 - d;
  bool plain_order = true;
  int64_t made_strides[kMaxNdim];  // of outputs that are made, in elements
  if (!one_run) {
    for (int i = 0; i < n; ++i) {
      if (operand_[i] != nullptr && !resized[i]) expand_strides(operand_[i], shape, strides[i]);
    }
    // Positive: a should be outside of b. The first operand that tells the two apart decides.
    auto compare = [&](int a, int b) {
      for (int i = 0; i < n; ++i) {
        if (operand_[i] == nullptr || resized[i]) continue;
        int64_t x = strides[i][a], y = strides[i][b];
        if ((flags & kReduction) && i < outputs && (x == 0) != (y == 0)) {
          return y == 0 ? 1 : -1;  // reduced dimensions become inner ones
        }
        if (x == 0 || y == 0) continue;
        if (x != y) return x < y ? -1 : 1;
        if (shape.sizes[a] > shape.sizes[b]) return 1;
      }
      return 0;
    };
    if (!(flags & kLinear)) {
      for (int i = 1; i < shape.ndim; ++i) {
        int at = i;
        for (int j = i - 1; j >= 0; --j) {
          int order = compare(perm[j], perm[at]);
          if (order > 0) {
            std::swap(perm[j], perm[at]);
            at = j;
          } else if (order < 0) {
            break;
          }
        }
      }
    }
    int64_t stride = 1;
    for (int d = 0; d < shape.ndim; ++d) {
      plain_order &= perm[d] == shape.ndim - 1 - d;
      made_strides[perm[d]] = stride;
      stride *= shape.sizes[perm[d]] > 1 ? shape.sizes[perm[d]] : 1;
    }
  } else if (!contiguous) {
    plain_order = false;
    for (int d = 0; d < shape.ndim; ++d) made_strides[d] = like->strides[d];
  }

  // ---- Outputs ----
  IntArrayRef wanted =
      plain_order ? IntArrayRef() : IntArrayRef(made_strides, static_cast<size_t>(shape.ndim));
  for (int i = 0; i < outputs; ++i) {
    bool missing = operand_[i] == nullptr;
    if (missing) {
      LAMELLA_CHECK(made != ScalarType::Undefined, op, ": expected '", name_of(i),
                    "' to be given, as its dtype is not known");
      TensorBase tensor = plain_order ? make_empty(shape.ref(), made, device)
                                      : make_empty_strided(shape.ref(), wanted, made, device);
      operand_[i] = tensor.impl();
      if (args.structured) {
        set_output_tensor(i, std::move(tensor));
      } else {
        heap().owned.push_back(std::move(tensor));
      }
    } else if (args.structured) {
      // The output's dtype was checked above; set_output checks or changes its shape.
      set_output_raw_strided(i, shape.ref(), wanted,
                             TensorOptions(type_of(operand_[i])).device(device));
      operand_[i] = maybe_get_output(i).impl();
    } else if (resized[i]) {
      auto* out = static_cast<TensorImpl*>(operand_[i]);
      if (plain_order) {
        resize_tensor(out, shape.ref());
      } else {
        resize_tensor_strided(out, shape.ref(), wanted);
      }
    }
    if (!missing && (flags & kEagerOutputs) && made != type_of(operand_[i])) {
      TensorBase temporary = make_empty_like(as_base(operand_[i]), made, device);
      heap().originals.emplace_back(i, TensorBase::borrow(operand_[i]));
      operand_[i] = temporary.impl();
      heap().owned.push_back(std::move(temporary));
      one_run =
          one_run && as_base(operand_[i]).strides() == heap().originals.back().second.strides();
    }
  }

  // ---- What the loops see ----
  uniform_ = native::loop_type(common_dtype_) == common_dtype_;
  for (int i = 0; i < n; ++i) {
    dtype_[i] = type_of(operand_[i]);
    data_[i] = static_cast<char*>(operand_[i]->data);
    if (i >= promoted) uniform_ = uniform_ && dtype_[i] == common_dtype_;
  }
  int64_t numel = 1;
  for (int d = 0; d < shape.ndim; ++d) numel *= shape.sizes[d];
  if (one_run || numel == 0) {
    set_run(numel);
    return;
  }
  for (int i = 0; i < n; ++i) expand_strides(operand_[i], shape, strides[i]);
  numel_ = numel;
  ndim_ = 0;
  make_room(shape.ndim, n);
  for (int k = 0; k < shape.ndim; ++k) {
    const int d = perm[k];
    if (shape.sizes[d] == 1) continue;
    for (int i = 0; i < n; ++i) strides_[ndim_ * n + i] = strides[i][d];
    shape_[ndim_++] = shape.sizes[d];
  }
  ndim_ = native::merge_dims(n, ndim_, shape_, strides_);
  if (ndim_ == 0) set_run(numel);  // one element
}

void TensorIteratorBase::make_room(int ndim, int count) {
  if (ndim <= kInlineDims && count <= kInlineOperands) {
    shape_ = inline_shape_;
    strides_ = inline_strides_;
    return;
  }
  heap().shape.resize(static_cast<size_t>(ndim));
  heap().strides.resize(static_cast<size_t>(ndim) * static_cast<size_t>(count));
  shape_ = heap().shape.data();
  strides_ = heap().strides.data();
}

void TensorIteratorBase::set_run(int64_t numel) {
  numel_ = numel;
  ndim_ = 1;
  make_room(1, ntensors_);
  shape_[0] = numel;
  for (int i = 0; i < ntensors_; ++i) strides_[i] = operand_[i] == nullptr ? 0 : element_size(i);
}

void TensorIteratorBase::add_number(int at, ScalarType stored) {
  int before = ntensors_, after = before + 1;
  std::vector<int64_t> shape(shape_, shape_ + ndim_);
  std::vector<int64_t> strides(strides_, strides_ + ndim_ * before);
  for (int i = before; i > at; --i) {
    operand_[i] = operand_[i - 1];
    data_[i] = data_[i - 1];
    dtype_[i] = dtype_[i - 1];
  }
  operand_[at] = nullptr;
  data_[at] = number_;
  dtype_[at] = stored;
  ntensors_ = static_cast<int8_t>(after);
  make_room(ndim_, after);
  for (int d = 0; d < ndim_; ++d) {
    shape_[d] = shape[static_cast<size_t>(d)];
    for (int i = 0; i < after; ++i) {
      strides_[d * after + i] =
          i == at ? 0 : strides[static_cast<size_t>(d * before + (i > at ? i - 1 : i))];
    }
  }
}

void TensorIteratorBase::cast_outputs() {
  if (heap_ == nullptr) return;
  for (auto& [i, original] : heap_->originals) {
    native::copy_converted(original, as_base(operand_[i]));
    operand_[i] = original.impl();
    dtype_[i] = original.dtype();
    data_[i] = static_cast<char*>(original.data_ptr());
    heap_->owned.push_back(std::move(original));
  }
  heap_->originals.clear();
}

// ---- Iterators of their own --------------------------------------------------------------------

TensorIterator::TensorIterator(TensorIterator&& other) noexcept {
  other.settle();
  int n = other.ntensors_;
  for (int i = 0; i < n; ++i) {
    operand_[i] = other.operand_[i];
    data_[i] = other.data_[i];
    dtype_[i] = other.dtype_[i];
  }
  simple_ = false;
  common_dtype_ = other.common_dtype_;
  device_type_ = other.device_type_;
  ntensors_ = other.ntensors_;
  noutputs_ = other.noutputs_;
  uniform_ = other.uniform_;
  ndim_ = other.ndim_;
  numel_ = other.numel_;
  heap_ = std::exchange(other.heap_, nullptr);
  bool inlined = other.shape_ == other.inline_shape_;
  shape_ = inlined ? inline_shape_ : other.shape_;
  strides_ = inlined ? inline_strides_ : other.strides_;
  if (inlined) {
    for (int d = 0; d < ndim_; ++d) inline_shape_[d] = other.inline_shape_[d];
    for (int i = 0; i < ndim_ * n; ++i) inline_strides_[i] = other.inline_strides_[i];
  }
}

TensorIteratorConfig& TensorIteratorConfig::add(const TensorBase& tensor, bool output, bool owned) {
  LAMELLA_CHECK(count_ < TensorIteratorBase::kMaxOperands, name_, ": expected at most ",
                TensorIteratorBase::kMaxOperands, " operands, got more");
  LAMELLA_CHECK(output || tensor.defined(), name_,
                ": expected a defined input, got an undefined tensor");
  LAMELLA_CHECK(!output || count_ == outputs_, name_,
                ": expected outputs to be added before inputs, got an output after one");
  operands_[count_++] = tensor.impl();
  if (output) ++outputs_;
  if (owned) owned_.push_back(tensor);
  return *this;
}

TensorIterator TensorIteratorConfig::build() {
  static constexpr const char* outputs[] = {"out",  "out1", "out2", "out3",
                                            "out4", "out5", "out6", "out7"};
  static constexpr const char* inputs[] = {"self",   "other",  "input2", "input3",
                                           "input4", "input5", "input6", "input7"};
  TensorIterator iter;
  TensorIteratorBase::BuildArguments args;
  for (int i = 0; i < count_; ++i) args.operands[i] = operands_[i];
  args.count = count_;
  args.outputs = outputs_;
  args.op = name_;
  args.output_names = outputs;
  args.input_names = inputs;
  args.flags = flags_;
  args.common = ScalarType::Undefined;
  args.static_dtype = static_dtype_;
  IntArrayRef shape;
  if (static_shape_) shape = *static_shape_;
  args.static_shape = static_shape_ ? &shape : nullptr;
  args.device = static_device_.value_or(Device(DeviceType::CPU));
  args.structured = false;
  if (!owned_.empty()) iter.heap().owned = owned_;
  iter.build_general(args);
  return iter;
}

namespace {
TensorIteratorConfig pointwise_config(TensorBase& out) {
  TensorIteratorConfig config;
  config.add_output(out).promote_inputs_to_common_dtype(true).cast_common_dtype_to_outputs(true);
  config.enforce_safe_casting_to_output(true).allow_cpu_scalars(true);
  return config;
}
TensorIterator finish_build(TensorIterator iter, TensorBase& out) {
  if (!out.defined()) out = iter.output();
  return iter;
}
}  // namespace

TensorIterator TensorIterator::binary_op(TensorBase& out, const TensorBase& a,
                                         const TensorBase& b) {
  return finish_build(pointwise_config(out).add_input(a).add_input(b).build(), out);
}
TensorIterator TensorIterator::binary_float_op(TensorBase& out, const TensorBase& a,
                                               const TensorBase& b) {
  return finish_build(
      pointwise_config(out).promote_integer_inputs_to_float(true).add_input(a).add_input(b).build(),
      out);
}
TensorIterator TensorIterator::comparison_op(TensorBase& out, const TensorBase& a,
                                             const TensorBase& b) {
  TensorIteratorConfig config = pointwise_config(out);
  config.cast_common_dtype_to_outputs(false).enforce_safe_casting_to_output(false);
  if (!out.defined()) config.declare_static_dtype(ScalarType::Bool);
  return finish_build(config.add_input(a).add_input(b).build(), out);
}
TensorIterator TensorIterator::unary_op(TensorBase& out, const TensorBase& a) {
  return finish_build(pointwise_config(out).add_input(a).build(), out);
}
TensorIterator TensorIterator::unary_float_op(TensorBase& out, const TensorBase& a) {
  return finish_build(
      pointwise_config(out).promote_integer_inputs_to_float(true).add_input(a).build(), out);
}
TensorIterator TensorIterator::nullary_op(TensorBase& out) {
  return TensorIteratorConfig().add_output(out).resize_outputs(false).build();
}
TensorIterator TensorIterator::reduce_op(TensorBase& out, const TensorBase& a) {
  return TensorIteratorConfig()
      .set_check_mem_overlap(false)
      .add_output(out)
      .add_input(a)
      .resize_outputs(false)
      .is_reduction(true)
      .promote_inputs_to_common_dtype(true)
      .build();
}

}  // namespace lamella
