// Calls of operators whose kernels are the device's own.
//
// Note [Shapes from the Meta backend]
//   What an operator checks and which shapes, dtypes and strides its results have is stated once,
//   by its kernel for Meta. So a boxed kernel here first calls that with tensors of the arguments'
//   shapes, which raises the CPU's errors, and allocates, or resizes, what is to be written. The
//   rest is a function that sees arguments and outputs, whichever form of the operator was called.
//   It may decline before it writes anything; then the operator runs on the CPU. Calls alike, with
//   tensors of the same geometry and equal other arguments, are asked for once: what the results of
//   the last call of an operator look like is kept.
#pragma once
#include <string_view>
#include <vector>

#include "lamella/cuda/backend.h"
#include "lamella/cuda/few.h"
#include "lamella/cuda/index_reports.h"
#include "lamella/cuda/kernels/walk.h"
#include "lamella/cuda/launch.h"

namespace lamella::cuda {

// Which arguments a written tensor may share memory with.
enum class Overlap : uint8_t {
  kAny,   // the result is computed apart and copied
  kSelf,  // with none but `self`, which it may be
  kRefused,
};

class Call {
 public:
  Call(const lamella_operator* op, const lamella_value* arguments)
      : op_(op), arguments_(arguments) {}

  // ---- Arguments by position ----
  Tensor tensor(int i) const { return value(i).toTensor(); }  // undefined for None
  std::vector<Tensor> tensors(int i) const;
  // An entry of a list of tensors, and how many it has.
  Tensor tensor_of(int i, size_t k) const {
    lamella_tensor* t = static_cast<lamella_tensor* const*>(at(i).as.pointer)[k];
    return t == nullptr ? Tensor() : Tensor(TensorBase::borrow(t));
  }
  size_t count(int i) const { return at(i).size; }
  int64_t integer(int i) const { return value(i).toInt(); }
  double number(int i, double missing) const { return is_none(i) ? missing : value(i).toDouble(); }
  bool flag(int i) const { return at(i).tag == LAMELLA_BOOL && at(i).as.i != 0; }
  Scalar scalar(int i) const { return value(i).toScalar(); }
  std::vector<int64_t> integers(int i) const;
  std::string_view text(int i) const {
    return {static_cast<const char*>(at(i).as.pointer), at(i).size};
  }
  bool is_tensor(int i) const { return at(i).tag == LAMELLA_TENSOR; }
  bool is_none(int i) const { return at(i).tag == LAMELLA_NONE; }

  // ---- Outputs ----
  Tensor output(int i = 0) const { return outputs_[static_cast<size_t>(i)]; }
  // Makes output 0 a copy of `self`, unless it is `self` itself.
  void start_from(const Tensor& self) const;

  int device() const { return device_; }
  // The operator as errors name it: "scatter_".
  const char* name() const { return name_; }

  // ---- For run_call() ----
  // False: the call has tensors of other devices, or more results than calls here have.
  bool prepare(Overlap overlap);
  void finish(lamella_value* returns);

 private:
  const lamella_value& at(int i) const { return arguments_[static_cast<size_t>(i)]; }
  IValue value(int i) const { return IValue::from_borrowed(at(i)); }

  struct Key;
  bool look_up(Key* key);
  void note(const Key& key) const;

  static constexpr size_t kMostOutputs = 8;
  const lamella_operator* op_;
  const lamella_value* arguments_;
  std::vector<lamella_value> changed_;  // the arguments, if some were replaced
  std::vector<Tensor> held_;            // by these
  const char* name_ = "";
  int device_ = 0;
  Few<Tensor, kMostOutputs> outputs_;
  std::vector<Tensor> targets_;  // what the caller gave to be written
};

using CallBody = bool (*)(Call& call);
lamella_status run_call(CallBody body, Overlap overlap, const lamella_kernel* kernel,
                        const lamella_operator* op, uint64_t key_set,
                        const lamella_value* arguments, lamella_value* returns) noexcept;
template <CallBody body, Overlap overlap>
lamella_status boxed_call(const lamella_kernel* kernel, const lamella_operator* op,
                          uint64_t key_set, const lamella_value* arguments,
                          lamella_value* returns) noexcept {
  return run_call(body, overlap, kernel, op, key_set, arguments, returns);
}
// Registers a function for operators: "gather gather.out".
template <CallBody body, Overlap overlap = Overlap::kAny>
void register_calls(Library& aten, std::string_view names) {
  while (!names.empty()) {
    const size_t end = names.find(' ');
    const std::string name(names.substr(0, end));
    aten.impl(name.c_str(), CppFunction::makeFromBoxedKernel(&boxed_call<body, overlap>));
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
}

// ---- Walks ----

// An operand of a walk. `strides` has an entry for each dimension, counted in elements of `bytes`.
struct Strided {
  const void* data = nullptr;
  IntArrayRef strides;
  int64_t bytes = 0;

  Strided() = default;
  Strided(const void* data, IntArrayRef strides, int64_t bytes)
      : data(data), strides(strides), bytes(bytes) {}
  explicit Strided(const Tensor& t)
      : data(t.data_ptr()), strides(t.strides()), bytes(static_cast<int64_t>(t.itemsize())) {}
};
bool lay_walk(IntArrayRef sizes, const Strided* operands, int count, Walk<1>* head,
              int64_t (*strides)[kWalkDims], uint64_t* data);
// Merges dimensions where all operands allow it. False: more are left than a kernel takes.
template <int N>
bool lay(Walk<N>* walk, IntArrayRef sizes, ArrayRef<Strided> operands) {
  Walk<1> head{};
  if (!lay_walk(sizes, operands.data(), static_cast<int>(operands.size()), &head, walk->strides,
                walk->data)) {
    return false;
  }
  walk->numel = head.numel;
  walk->ndim = head.ndim;
  walk->narrow = head.narrow;
  for (int d = 0; d < kWalkDims; ++d) walk->sizes[d] = head.sizes[d];
  return true;
}
// What lists of a call's dimensions hold.
inline constexpr size_t kMostDims = 64;
using Sizes = Few<int64_t, kMostDims>;
// The strides with which a tensor is read in a larger shape, the last of `rank` dimensions.
Sizes broadcast_strides(const Tensor& t, IntArrayRef sizes, size_t rank);

}  // namespace lamella::cuda
