// PyTorch's stable C functions, found in the process, and tensors of torch as those of Lamella.
#pragma once
#include <utility>

#include "lamella/bridge/bridge.h"

namespace lamella::bridge {

using Handle = void*;
using StableValue = uint64_t;
using StableKernel = void (*)(StableValue*, uint64_t, uint64_t);

// Name, result, parameters, and whether every version of torch from 2.10 on has it.
#define LAMELLA_TORCH_FUNCTIONS(X)                                                                 \
  X(aoti_torch_library_init_impl, int, (const char*, const char*, const char*, uint32_t, Handle*), \
    true)                                                                                          \
  X(aoti_torch_library_impl, int, (Handle, const char*, StableKernel), true)                       \
  X(torch_library_impl, int, (Handle, const char*, StableKernel, uint64_t), false)                 \
  X(aoti_torch_abi_version, uint64_t, (), false)                                                   \
  X(aoti_torch_call_dispatcher, int, (const char*, const char*, StableValue*), true)               \
  X(torch_call_dispatcher, int, (const char*, const char*, StableValue*, uint64_t), false)         \
  X(aoti_torch_grad_mode_is_enabled, bool, (), true)                                               \
  X(torch_parallel_for, int,                                                                       \
    (int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*), void*), true)                   \
  X(torch_get_num_threads, int, (uint32_t*), true)                                                 \
  X(aoti_torch_is_defined, int, (Handle, bool*), true)                                             \
  X(aoti_torch_get_dim, int, (Handle, int64_t*), true)                                             \
  X(aoti_torch_get_sizes, int, (Handle, int64_t**), true)                                          \
  X(aoti_torch_get_strides, int, (Handle, int64_t**), true)                                        \
  X(aoti_torch_get_data_ptr, int, (Handle, void**), true)                                          \
  X(aoti_torch_get_dtype, int, (Handle, int32_t*), true)                                           \
  X(aoti_torch_get_device_type, int, (Handle, int32_t*), true)                                     \
  X(aoti_torch_get_device_index, int, (Handle, int32_t*), true)                                    \
  X(aoti_torch_delete_tensor_object, int, (Handle), true)                                          \
  X(aoti_torch_new_tensor_handle, int, (Handle, Handle*), true)                                    \
  X(aoti_torch_empty_strided, int,                                                                 \
    (int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, Handle*), true)           \
  X(aoti_torch__reinterpret_tensor, int,                                                           \
    (Handle, int64_t, const int64_t*, const int64_t*, int64_t, Handle*), true)                     \
  X(torch_from_blob, int,                                                                          \
    (void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t, Handle*,  \
     int32_t, const uint8_t*, int64_t, void (*)(void*, void*), void*),                             \
    false)                                                                                         \
  X(torch_new_list_reserve_size, int, (size_t, Handle*), true)                                     \
  X(torch_list_size, int, (Handle, size_t*), true)                                                 \
  X(torch_list_get_item, int, (Handle, size_t, StableValue*), true)                                \
  X(torch_list_push_back, int, (Handle, StableValue), true)                                        \
  X(torch_delete_list, int, (Handle), true)                                                        \
  X(torch_new_string_handle, int, (const char*, size_t, Handle*), true)                            \
  X(torch_string_length, int, (Handle, size_t*), true)                                             \
  X(torch_string_c_str, int, (Handle, const char**), true)                                         \
  X(torch_delete_string, int, (Handle), true)                                                      \
  X(torch_new_stable_ivalue, int, (StableValue**), false)                                          \
  X(torch_delete_stable_ivalue, int, (StableValue*), false)                                        \
  X(torch_exception_get_what_without_backtrace, const char*, (), false)

struct Torch {
#define LAMELLA_TORCH_MEMBER(name, result, parameters, needed) result(*name) parameters = nullptr;
  LAMELLA_TORCH_FUNCTIONS(LAMELLA_TORCH_MEMBER)
#undef LAMELLA_TORCH_MEMBER
};
extern Torch torch;

// Throws what torch says of a failure.
void done(int status, const char* what);
// Finds the functions. torch must have been imported.
void open_torch(const char* library);

// For a block, if torch is there: parallel loops of kernels run on its threads, and where it has no
// tensors over other memory, results that are not small lie in its own.
class TorchThreads {
 public:
  TorchThreads();
  ~TorchThreads();
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  bool is_set_;
  const lamella_host_threads* before_;
  const lamella_host_memory* memory_;
};

// A failure that torch's Python functions raise as the error of Python that it is. torch binds them
// with pybind11, which lets errors that derive from its class, known by the name, set Python's own;
// anything else that catches it sees a std::runtime_error.
[[noreturn]] void raise(lamella_status kind, const char* text);
// The same of the error that a kernel in Python, called through torch, has kept.
[[noreturn]] void raise_kept(const char* text);
// The same of the error of Python that is set.
[[noreturn]] void raise_set();
// The parts of torch that a call needs: see torch_autograd.cpp. A plain call needs the kernel for
// the CPU alone.
enum class Part : uint8_t { kPlain, kGradient, kOther };
Part part_of_torch(const std::vector<Argument>& arguments, const StableValue* stack);

// The result of a function of Python on a call's values, which are taken over; torch_gradient.cpp.
bool can_apply(const std::vector<Argument>& arguments);
StableValue applied(void* function, const std::vector<Argument>& arguments,
                    const StableValue* stack);
// The tensor in an object of torch, borrowed; plain or not.
Handle handle_of(void* object);

struct OwnedHandle {
  Handle handle = nullptr;
  OwnedHandle() = default;
  explicit OwnedHandle(Handle owned) : handle(owned) {}
  OwnedHandle(OwnedHandle&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~OwnedHandle() {
    if (handle != nullptr) torch.aoti_torch_delete_tensor_object(handle);
  }
  Handle take() { return std::exchange(handle, nullptr); }
};

// The memory of a tensor of torch as a tensor of Lamella, which calls deleter(context) in
// the end, or at once where this fails.
lamella_tensor* imported(Handle handle, void (*deleter)(void*), void* context);
// The same, which keeps the former.
lamella_tensor* imported(OwnedHandle owned);
// A tensor of torch over a result's memory. Takes over one reference.
Handle exported(lamella_tensor* tensor);

}  // namespace lamella::bridge
