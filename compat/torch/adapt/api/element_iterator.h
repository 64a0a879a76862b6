// ElementIterator: for kernels in operator libraries: brings tensors to one shape and iterates over
// them together. Inline over the C ABI; Lamella's own kernels use TensorIterator.
//
// Note [How operands become one shape]
//   Inputs are broadcast and, if requested, converted to their common dtype; outputs are made,
//   resized, or replaced by temporaries that cast_outputs() copies back. The dimensions are then
//   ordered by the strides of the first operands, and adjacent ones merged where strides allow.
#pragma once
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/memory_overlap.h"
#include "lamella/parallel.h"

namespace lamella {

// A range of elements, counted in the order of the walk.
struct Range {
  Range(int64_t begin, int64_t end) : begin(begin), end(end) {}
  int64_t size() const { return end - begin; }
  int64_t begin, end;
};

class ElementIterator {
 public:
  int ndim() const { return static_cast<int>(shape_.size()); }
  // Innermost dimension first, merged.
  IntArrayRef shape() const { return shape_; }
  int64_t numel() const { return numel_; }
  int ntensors() const { return static_cast<int>(operands_.size()); }
  int noutputs() const { return outputs_; }
  int ninputs() const { return ntensors() - outputs_; }
  // Bytes, along the dimensions of shape().
  IntArrayRef strides(int arg) const { return at(arg).strides; }
  void* data_ptr(int arg) const { return at(arg).data; }
  ScalarType dtype(int arg = 0) const { return at(arg).tensor.scalar_type(); }
  ScalarType input_dtype(int arg = 0) const { return dtype(outputs_ + arg); }
  // The dtype of the computation. Undefined if operands keep their own dtypes.
  ScalarType common_dtype() const { return common_; }
  Device device(int arg = 0) const { return at(arg).tensor.device(); }
  DeviceType device_type(int arg = 0) const { return device(arg).type(); }
  int64_t element_size(int arg) const { return at(arg).tensor.element_size(); }
  const Tensor& tensor(int arg) const { return at(arg).tensor; }
  const TensorBase& tensor_base(int arg) const { return at(arg).tensor; }
  // The tensor that was given or made, not the temporary that replaces it.
  const Tensor& output(int arg = 0) const { return at(arg).original; }
  const Tensor& input(int arg = 0) const { return tensor(outputs_ + arg); }
  bool is_scalar(int arg) const { return at(arg).tensor.numel() == 1; }
  bool is_cpu_scalar(int arg) const { return is_scalar(arg) && device(arg).is_cpu(); }
  bool is_trivial_1d() const { return ndim() <= 1; }
  bool is_contiguous() const {
    bool all = ndim() <= 1;
    for (int i = 0; all && i < ntensors(); ++i) {
      all = numel_ <= 1 || at(i).strides.empty() || at(i).strides[0] == element_size(i);
    }
    return all;
  }
  template <class T>
  T scalar_value(int arg) const {
    return *static_cast<const T*>(data_ptr(arg));
  }
  template <class T>
  T original_scalar_value(int arg) const {
    return at(arg).original.item().template to<T>();
  }
  // Removes an operand that the kernel reads separately.
  void remove_operand(int arg) { operands_.erase(operands_.begin() + arg); }
  // Copies outputs that were replaced by temporaries back.
  void cast_outputs() {
    for (int i = 0; i < outputs_; ++i) {
      if (!at(i).original.is_same(at(i).tensor)) at(i).original.copy_(at(i).tensor);
    }
  }

  // loop(char** data, const int64_t* strides, int64_t size) for runs of the innermost dimension, or
  // loop(data, strides, size0, size1): strides of all operands along the innermost dimension, then
  // along the next. Parts of at least `grain` elements may run on other threads; elements of one
  // place of an output stay together.
  template <class F>
  void for_each(F&& loop, int64_t grain = 32768) const {
    if (numel_ == 0) return;
    int split = 0;  // the longest dimension along which the outputs move
    for (int d = 0; d < ndim(); ++d) {
      if (moves_outputs(d) && (!moves_outputs(split) || shape_[d] > shape_[split])) split = d;
    }
    if (ndim() == 0 || numel_ < grain || !moves_outputs(split)) {
      walk(loop, 0, 0, ndim() == 0 ? 1 : shape_[0]);
      return;
    }
    int64_t each = numel_ / shape_[split];  // at least 1
    parallel_for(0, shape_[split], grain > each ? grain / each : 1,
                 [&](int64_t begin, int64_t end) { walk(loop, split, begin, end); });
  }
  template <class F>
  void serial_for_each(F&& loop, Range range) const {
    for (int64_t i = range.begin; i < range.end; ++i) {
      std::vector<char*> data = start();
      std::vector<int64_t> strides(static_cast<size_t>(2 * ntensors()));
      int64_t rest = i;
      for (int d = 0; d < ndim(); rest /= shape_[d++]) advance(data, d, rest % shape_[d]);
      run(loop, data.data(), strides.data(), 1, 1);
    }
  }

 private:
  friend class ElementIteratorConfig;
  struct Operand {
    Tensor tensor, original;
    std::vector<int64_t> strides;
    char* data = nullptr;
  };
  const Operand& at(int arg) const { return operands_[static_cast<size_t>(arg)]; }
  bool moves_outputs(int d) const {
    bool all = true;
    for (int i = 0; i < outputs_; ++i) all = all && at(i).strides[static_cast<size_t>(d)] != 0;
    return all;
  }
  std::vector<char*> start() const {
    std::vector<char*> data;
    for (const Operand& operand : operands_) data.push_back(operand.data);
    return data;
  }
  void advance(std::vector<char*>& data, int d, int64_t steps) const {
    for (int i = 0; i < ntensors(); ++i) {
      data[static_cast<size_t>(i)] += steps * at(i).strides[static_cast<size_t>(d)];
    }
  }
  template <class F>
  void run(F& loop, char** data, const int64_t* strides, int64_t size0, int64_t size1) const {
    if constexpr (std::is_invocable_v<F&, char**, const int64_t*, int64_t, int64_t>) {
      loop(data, strides, size0, size1);
    } else {
      int count = ntensors();
      std::vector<char*> row(data, data + count);
      for (int64_t j = 0; j < size1; ++j) {
        std::vector<char*> given = row;
        loop(given.data(), strides, size0);
        for (int i = 0; i < count; ++i) row[static_cast<size_t>(i)] += strides[count + i];
      }
    }
  }
  // The elements whose place along `split` is in [begin, end).
  template <class F>
  void walk(F& loop, int split, int64_t begin, int64_t end) const {
    std::vector<int64_t> shape = shape_, index(shape_.size());
    std::vector<char*> data = start();
    if (!shape.empty()) {
      shape[static_cast<size_t>(split)] = end - begin;
      advance(data, split, begin);
    }
    std::vector<int64_t> strides;
    for (size_t d = 0; d < 2; ++d) {
      for (const Operand& operand : operands_) {
        strides.push_back(d < shape.size() ? operand.strides[d] : 0);
      }
    }
    int64_t size0 = shape.empty() ? 1 : shape[0], size1 = shape.size() < 2 ? 1 : shape[1];
    while (true) {
      std::vector<char*> given = data;
      run(loop, given.data(), strides.data(), size0, size1);
      size_t d = 2;
      for (; d < shape.size(); ++d) {
        advance(data, static_cast<int>(d), 1);
        if (++index[d] < shape[d]) break;
        advance(data, static_cast<int>(d), -shape[d]);
        index[d] = 0;
      }
      if (d >= shape.size()) return;
    }
  }

  std::vector<Operand> operands_;
  std::vector<int64_t> shape_;
  int outputs_ = 0;
  int64_t numel_ = 1;
  ScalarType common_ = ScalarType::Undefined;
};

// Outputs are added before inputs; an undefined output is made. The setters and their defaults are
// those of PyTorch's TensorIteratorConfig.
class ElementIteratorConfig {
 public:
  ElementIteratorConfig& add_output(const TensorBase& tensor) {
    LAMELLA_CHECK(static_cast<size_t>(outputs_) == operands_.size(),
                  "TensorIteratorConfig: expected outputs to be added before inputs");
    ++outputs_;
    operands_.emplace_back(tensor);
    return *this;
  }
  ElementIteratorConfig& add_input(const TensorBase& tensor) {
    operands_.emplace_back(tensor);
    return *this;
  }
  ElementIteratorConfig& add_owned_output(const TensorBase& t) { return add_output(t); }
  ElementIteratorConfig& add_borrowed_output(const TensorBase& t) { return add_output(t); }
  ElementIteratorConfig& add_const_input(const TensorBase& t) { return add_input(t); }
  ElementIteratorConfig& add_owned_input(const TensorBase& t) { return add_input(t); }
  ElementIteratorConfig& add_owned_const_input(const TensorBase& t) { return add_input(t); }
  ElementIteratorConfig& add_borrowed_input(const TensorBase& t) { return add_input(t); }
  ElementIteratorConfig& add_borrowed_const_input(const TensorBase& t) { return add_input(t); }

  ElementIteratorConfig& set_check_mem_overlap(bool on) { return set(check_overlap_, on); }
  ElementIteratorConfig& check_all_same_dtype(bool on) { return set(same_dtype_, on); }
  ElementIteratorConfig& check_all_same_device(bool on) { return set(same_device_, on); }
  ElementIteratorConfig& allow_cpu_scalars(bool on) { return set(cpu_scalars_, on); }
  ElementIteratorConfig& enforce_safe_casting_to_output(bool on) { return set(safe_cast_, on); }
  ElementIteratorConfig& enforce_linear_iteration(bool on = true) { return set(linear_, on); }
  ElementIteratorConfig& promote_inputs_to_common_dtype(bool on) {
    same_dtype_ = same_dtype_ && !on;
    return set(promote_, on);
  }
  ElementIteratorConfig& promote_integer_inputs_to_float(bool on) { return set(to_float_, on); }
  ElementIteratorConfig& cast_common_dtype_to_outputs(bool on) {
    same_dtype_ = same_dtype_ && !on;
    return set(cast_outputs_, on);
  }
  ElementIteratorConfig& is_reduction(bool on) { return set(reduction_, on); }
  ElementIteratorConfig& resize_outputs(bool on) { return set(resize_, on); }
  ElementIteratorConfig& declare_static_dtype(ScalarType dtype) {
    static_dtype_ = dtype;
    return *this;
  }
  ElementIteratorConfig& declare_static_device(Device device) {
    static_device_ = device;
    return *this;
  }
  ElementIteratorConfig& declare_static_dtype_and_device(ScalarType dtype, Device device) {
    return declare_static_dtype(dtype).declare_static_device(device);
  }
  ElementIteratorConfig& declare_static_shape(IntArrayRef shape) {
    static_shape_ = shape.vec();
    return resize_outputs(false);
  }

  LAMELLA_LAZY ElementIterator build() {
    ElementIterator it;
    it.outputs_ = outputs_;
    for (Tensor& tensor : operands_) it.operands_.push_back({tensor, tensor, {}, nullptr});
    check_operands();
    it.common_ = common_dtype();
    std::vector<int64_t> shape = static_shape_ ? *static_shape_ : broadcast();
    for (int i = 0; i < it.ntensors(); ++i) {
      prepare(it, it.operands_[static_cast<size_t>(i)], i, shape);
    }
    place(it, shape);
    return it;
  }

 private:
  static constexpr const char* kName = "TensorIterator";

  ElementIteratorConfig& set(bool& flag, bool on) {
    flag = on;
    return *this;
  }
  LAMELLA_LAZY void check_operands() const {
    const Tensor* first = nullptr;
    for (const Tensor& tensor : operands_) {
      if (!tensor.defined()) continue;
      if (first == nullptr) first = &tensor;
      LAMELLA_CHECK(!same_dtype_ || tensor.scalar_type() == first->scalar_type(), kName,
                    ": expected operands of one dtype, got ", first->scalar_type(), " and ",
                    tensor.scalar_type());
      LAMELLA_CHECK(!same_device_ || tensor.device() == first->device() ||
                        (cpu_scalars_ && tensor.dim() == 0 && tensor.is_cpu()),
                    kName, ": expected operands on one device, got ", first->device(), " and ",
                    tensor.device());
    }
    for (int i = 0; check_overlap_ && i < outputs_; ++i) {
      const Tensor& output = operands_[static_cast<size_t>(i)];
      if (!output.defined()) continue;
      check_no_internal_overlap(kName, "output", output);
      for (size_t k = static_cast<size_t>(outputs_); k < operands_.size(); ++k) {
        check_no_partial_overlap(kName, "output", output, "input", operands_[k]);
      }
    }
  }
  // PyTorch's promotion: tensors with dimensions decide before those without, and these before
  // numbers, unless the latter are of a higher category.
  LAMELLA_LAZY ScalarType common_dtype() const {
    if (!promote_ && !cast_outputs_ && !to_float_) return ScalarType::Undefined;
    ScalarType levels[3] = {ScalarType::Undefined, ScalarType::Undefined, ScalarType::Undefined};
    for (size_t k = static_cast<size_t>(outputs_); k < operands_.size(); ++k) {
      const Tensor& t = operands_[k];
      ScalarType type = t.scalar_type();
      if (t.is_wrapped_number() && is_floating_point(type)) type = default_dtype();
      ScalarType& level = levels[t.dim() > 0 ? 0 : t.is_wrapped_number() ? 2 : 1];
      level = level == ScalarType::Undefined ? type : promote_types(level, type);
    }
    auto kind = [](ScalarType type) {
      return type == ScalarType::Undefined ? -1
             : is_complex(type)            ? 3
             : is_floating_point(type)     ? 2
             : type != ScalarType::Bool    ? 1
                                           : 0;
    };
    ScalarType common = levels[0];
    for (ScalarType lower : {levels[1], levels[2]}) {
      if (kind(lower) <= kind(common)) continue;
      bool complex_of_common = kind(lower) == 3 && kind(common) == 2;
      common = complex_of_common                 ? to_complex_type(common)
               : common == ScalarType::Undefined ? lower
                                                 : promote_types(common, lower);
    }
    bool integral = common != ScalarType::Undefined && kind(common) < 2;
    return to_float_ && integral ? default_dtype() : common;
  }
  LAMELLA_LAZY static ScalarType default_dtype() { return empty({0}).scalar_type(); }
  // The shape of all inputs, and of outputs that are not resized.
  LAMELLA_LAZY std::vector<int64_t> broadcast() const {
    std::vector<int64_t> shape;
    for (size_t k = 0; k < operands_.size(); ++k) {
      bool output = k < static_cast<size_t>(outputs_);
      if (!operands_[k].defined() || (output && (resize_ && operands_.size() > size_t(outputs_)))) {
        continue;
      }
      IntArrayRef sizes = operands_[k].sizes();
      if (sizes.size() > shape.size()) shape.insert(shape.begin(), sizes.size() - shape.size(), 1);
      for (size_t d = 0; d < sizes.size(); ++d) {
        int64_t& size = shape[shape.size() - sizes.size() + d];
        LAMELLA_CHECK(size == sizes[d] || size == 1 || sizes[d] == 1, kName,
                      ": expected operands to be broadcastable to one shape, got ",
                      IntArrayRef(shape), " and ", sizes);
        if (size == 1) size = sizes[d];
      }
    }
    return shape;
  }
  LAMELLA_LAZY void prepare(ElementIterator& it, ElementIterator::Operand& operand, int i,
                            const std::vector<int64_t>& shape) const {
    ScalarType common = it.common_;
    if (i >= outputs_) {
      if (promote_ && operand.tensor.scalar_type() != common) {
        operand.tensor = operand.tensor.to(common);
      }
      return;
    }
    if (!operand.tensor.defined()) {
      const Tensor* like = nullptr;  // an input of the shape, whose order in memory is kept
      for (size_t k = operands_.size(); k-- > static_cast<size_t>(outputs_);) {
        if (operands_[k].sizes() == IntArrayRef(shape)) like = &operands_[k];
      }
      const Tensor* any =
          operands_.size() > static_cast<size_t>(outputs_) ? &operands_.back() : nullptr;
      ScalarType dtype = static_dtype_ != ScalarType::Undefined ? static_dtype_
                         : common != ScalarType::Undefined      ? common
                         : any != nullptr                       ? any->scalar_type()
                                                                : default_dtype();
      Device device = static_device_   ? *static_device_
                      : any != nullptr ? any->device()
                                       : Device(kCPU);
      TensorOptions options = TensorOptions(dtype).device(device);
      operand.original = like != nullptr ? empty_like(*like, options) : empty(shape, options);
      operand.tensor = operand.original;
      return;
    }
    const Tensor& output = operand.original;
    if (output.sizes() != IntArrayRef(shape) && !reduction_) {
      LAMELLA_CHECK(resize_, kName, ": expected an output of shape ", IntArrayRef(shape), ", got ",
                    output.sizes());
      output.resize_(shape);
    }
    if (common == ScalarType::Undefined || output.scalar_type() == common) return;
    LAMELLA_CHECK(!safe_cast_ || can_cast(common, output.scalar_type()), kName,
                  ": expected an output that ", common, " can be converted to, got ",
                  output.scalar_type());
    if (cast_outputs_) operand.tensor = empty_like(output, TensorOptions(common));
  }
  // Strides over the shape, its dimensions ordered and merged.
  LAMELLA_LAZY void place(ElementIterator& it, const std::vector<int64_t>& shape) const {
    size_t dims = shape.size();
    for (auto& operand : it.operands_) {
      const Tensor& t = operand.tensor;
      operand.data = static_cast<char*>(const_cast<void*>(t.const_data_ptr()));
      operand.strides.assign(dims, 0);
      for (size_t d = 0; d < static_cast<size_t>(t.dim()); ++d) {
        size_t back = dims - static_cast<size_t>(t.dim()) + d;
        if (t.sizes()[d] != 1) operand.strides[dims - 1 - back] = t.strides()[d] * t.element_size();
      }
    }
    it.shape_.assign(shape.rbegin(), shape.rend());
    it.numel_ = 1;
    for (int64_t size : shape) it.numel_ *= size;
    auto goes_behind = [&](size_t inner, size_t outer) {  // whether the outer one has less stride
      for (const auto& operand : it.operands_) {
        int64_t a = operand.strides[inner], b = operand.strides[outer];
        if (a != b && a != 0 && b != 0) return a > b;
      }
      return false;
    };
    auto swap_dims = [&](size_t a, size_t b) {
      std::swap(it.shape_[a], it.shape_[b]);
      for (auto& operand : it.operands_) std::swap(operand.strides[a], operand.strides[b]);
    };
    for (size_t i = 1; !linear_ && i < dims; ++i) {
      for (size_t k = i; k > 0 && goes_behind(k - 1, k); --k) swap_dims(k - 1, k);
    }
    size_t last = 0;
    for (size_t d = 1; d < dims; ++d) {
      bool one = it.shape_[last] == 1 || it.shape_[d] == 1;
      bool merges = true;
      for (const auto& operand : it.operands_) {
        merges = merges && (one || operand.strides[last] * it.shape_[last] == operand.strides[d]);
      }
      if (!merges) ++last;
      for (auto& operand : it.operands_) {
        if (!merges || it.shape_[last] == 1) operand.strides[last] = operand.strides[d];
      }
      it.shape_[last] = merges ? it.shape_[last] * it.shape_[d] : it.shape_[d];
    }
    size_t left = dims == 0 ? 0 : last + 1;
    it.shape_.resize(left);
    for (auto& operand : it.operands_) operand.strides.resize(left);
  }

  std::vector<Tensor> operands_;
  int outputs_ = 0;
  bool check_overlap_ = true, same_dtype_ = true, same_device_ = true, cpu_scalars_ = false;
  bool safe_cast_ = false, linear_ = false, promote_ = false, to_float_ = false;
  bool cast_outputs_ = false, reduction_ = false, resize_ = true;
  ScalarType static_dtype_ = ScalarType::Undefined;
  std::optional<Device> static_device_;
  std::optional<std::vector<int64_t>> static_shape_;
};

}  // namespace lamella
