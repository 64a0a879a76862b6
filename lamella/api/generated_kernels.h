// Functions that the kernels from lamella-gen call: copies for autogen, the check that tensors
// share a device, and the count of writes. Usable from separately built libraries.
#pragma once
#include "lamella/abi/autograd.h"
#include "lamella/api/basic_calls.h"
#include "lamella/api/meta_base.h"

namespace lamella::detail {

// ---- Checks ----

// Throws if arguments are on different devices. Call see() for each argument in turn; undefined
// tensors are ignored. see_number() also ignores CPU tensors without dimensions, which the kernel
// reads on any device as numbers; see_indices() ignores all CPU tensors.
class SameDevice {
 public:
  explicit SameDevice(const char* op) : op_(op) {}

  void see(const char* name, const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (name_ == nullptr) {
      name_ = name;
      device_ = tensor.device();
      return;
    }
    LAMELLA_CHECK(tensor.device() == device_, op_,
                  ": expected all tensors to be on one device, got '", name_, "' on ", device_,
                  " and '", name, "' on ", tensor.device());
  }
  void see(const char* name, const std::optional<Tensor>& tensor) {
    if (tensor.has_value()) see(name, *tensor);
  }
  void see(const char* name, TensorList list) {
    for (const Tensor& tensor : list) see(name, tensor);
  }
  void see_number(const char* name, const Tensor& tensor) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
    see(name, tensor);
  }
  void see_number(const char* name, const std::optional<Tensor>& tensor) {
    if (tensor.has_value()) see_number(name, *tensor);
  }
  void see_number(const char* name, TensorList list) {
    for (const Tensor& tensor : list) see_number(name, tensor);
  }
  void see_indices(const char* name, TensorList list) {
    for (const Tensor& tensor : list) {
      if (tensor.defined() && !tensor.is_cpu()) see(name, tensor);
    }
  }

 private:
  const char* op_;
  const char* name_ = nullptr;
  Device device_{DeviceType::CPU};
};

// Throws if an argument of a composite operator that writes to `out` requires gradients: the
// history would be lost, or would become the history of `out`. Call see() for each argument.
class NoGradientsWithOut {
 public:
  explicit NoGradientsWithOut(const char* op)
      : op_(op), records_((lamella_modes() & LAMELLA_MODE_NO_GRAD) == 0) {}

  void see(const char* name, const Tensor& tensor) const {
    if (!tensor.defined()) return;
    bool has = (tensor.impl()->flags & LAMELLA_TENSOR_TANGENT) != 0 ||
               (records_ && lamella_tensor_requires_grad(tensor.impl()) != 0);
    LAMELLA_CHECK(!has, op_,
                  ": expected no argument to require gradients where the result is written to "
                  "'out', got '",
                  name, "' that does; call it without 'out', or under no_grad()");
  }
  void see(const char* name, const std::optional<Tensor>& tensor) const {
    if (tensor.has_value()) see(name, *tensor);
  }
  void see(const char* name, TensorList list) const {
    for (const Tensor& tensor : list) see(name, tensor);
  }

 private:
  const char* op_;
  bool records_;
};

// Counts a write of a kernel to the tensor.
inline void wrote(const Tensor& tensor) {
  if (tensor.defined()) lamella_tensor_bump_version(tensor.impl());
}
inline void wrote(const std::optional<Tensor>& tensor) {
  if (tensor.has_value()) wrote(*tensor);
}
inline void wrote(TensorList list) {
  for (const Tensor& tensor : list) wrote(tensor);
}

// The writes to a tensor so far, for comparison with a later count.
inline uint64_t writes_to(const Tensor& tensor) {
  return tensor.defined() ? lamella_tensor_version(tensor.impl()) : 0;
}
inline uint64_t writes_to(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? writes_to(*tensor) : 0;
}
inline uint64_t writes_to(TensorList list) {
  uint64_t sum = 0;
  for (const Tensor& tensor : list) sum += writes_to(tensor);
  return sum;
}
// Counts a write unless one was counted since `before`.
template <class T>
void wrote_since(uint64_t before, const T& written) {
  if (writes_to(written) == before) wrote(written);
}

// ---- Copies, for kernels made by autogen ----

inline Tensor cloned(const Tensor& tensor) {
  return tensor.defined() ? Clone::call(tensor, std::nullopt) : Tensor();
}
inline std::optional<Tensor> cloned(const std::optional<Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return cloned(*tensor);
}
inline std::vector<Tensor> cloned(TensorList list) {
  std::vector<Tensor> copies;
  copies.reserve(list.size());
  for (const Tensor& tensor : list) copies.push_back(cloned(tensor));
  return copies;
}

inline void check_castable(const char* op, const char* name, const Tensor& target,
                           const Tensor& result) {
  LAMELLA_CHECK(can_cast(result.dtype(), target.dtype()), op, ": expected '", name,
                "' to have a dtype that ", result.dtype(), " can be cast to, got ", target.dtype());
  LAMELLA_CHECK(same_device(target.device(), result.device()), op, ": expected '", name,
                "' to be on ", result.device(), ", got ", target.device());
}

// Writes the result of a functional operator into `self`.
inline void assign_inplace(const char* op, Tensor& self, const Tensor& result) {
  check_castable(op, "self", self, result);
  LAMELLA_CHECK(self.sizes() == result.sizes(), op,
                ": expected 'self' to have the shape of the result, ", result.sizes(), ", got ",
                self.sizes());
  Copy::call(self, result, false);
}

// Writes a result into an out argument, which takes on its shape.
inline void assign_out(const char* op, const char* name, const Tensor& out, const Tensor& result) {
  LAMELLA_CHECK(out.defined(), op, ": expected '", name, "' to be a tensor, got an undefined one");
  check_castable(op, name, out, result);
  if (out.sizes() != result.sizes()) resize_out(out, result.sizes(), {});
  Copy::call(const_cast<Tensor&>(out), result, false);
}
inline void assign_out(const char* op, const char* name, TensorList outs, TensorList results) {
  LAMELLA_CHECK(outs.size() == results.size(), op, ": expected '", name, "' to hold ",
                results.size(), " tensors, got ", outs.size());
  for (size_t i = 0; i < outs.size(); ++i) assign_out(op, name, outs[i], results[i]);
}
inline void assign_out(const char* op, const char* name, TensorList outs,
                       const std::vector<Tensor>& results) {
  assign_out(op, name, outs, TensorList(results));
}

}  // namespace lamella::detail
