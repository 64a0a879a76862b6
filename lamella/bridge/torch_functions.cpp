// PyTorch's stable C functions by dlsym, and tensors both ways.
#include "lamella/bridge/torch_functions.h"

#include <dlfcn.h>

#include <cstring>

namespace lamella::bridge {

Torch torch;

void done(int status, const char* what) {
  if (status == 0) return;
  auto text = torch.torch_exception_get_what_without_backtrace;
  throw Failure(std::string(what) + " failed" +
                (text != nullptr ? std::string(": ") + text() : ""));
}

void open_torch(const char* library) {
  void* handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) throw Failure("bridge.torch: expected torch to be imported");
#define LAMELLA_TORCH_FIND(name, result, parameters, needed)                             \
  torch.name = reinterpret_cast<decltype(torch.name)>(dlsym(handle, #name));             \
  if (needed && torch.name == nullptr) {                                                 \
    throw Failure("bridge.torch: expected torch 2.10 or newer, got one without " #name); \
  }
  LAMELLA_TORCH_FUNCTIONS(LAMELLA_TORCH_FIND)
#undef LAMELLA_TORCH_FIND
}

lamella_tensor* imported(Handle handle, void (*deleter)(void*), void* context) {
  int64_t dim = 0;
  int64_t *sizes = nullptr, *strides = nullptr;
  void* data = nullptr;
  int32_t dtype = 0, device = 0, index = 0;
  const bool failed = torch.aoti_torch_get_dim(handle, &dim) ||
                      torch.aoti_torch_get_sizes(handle, &sizes) ||
                      torch.aoti_torch_get_strides(handle, &strides) ||
                      torch.aoti_torch_get_dtype(handle, &dtype) ||
                      torch.aoti_torch_get_device_type(handle, &device) ||
                      (device != 0 && torch.aoti_torch_get_device_index(handle, &index)) ||
                      torch.aoti_torch_get_data_ptr(handle, &data);
  if (failed) {
    deleter(context);
    done(1, "reading a tensor");
  }
  lamella_tensor* made = nullptr;
  check(lamella_tensor_from_blob(data, static_cast<int32_t>(dim), sizes, strides,
                                 static_cast<uint8_t>(dtype), static_cast<uint8_t>(device),
                                 static_cast<int8_t>(device == 0 ? -1 : index), deleter, context,
                                 &made));
  return made;
}
lamella_tensor* imported(OwnedHandle owned) {
  Handle handle = owned.take();
  return imported(handle, [](void* kept) { torch.aoti_torch_delete_tensor_object(kept); }, handle);
}

namespace {

// New tensors are bytes of torch, where copying them would take longer than making a view of these.
// Note [Where results lie] in docs/bridge.md.
constexpr size_t kFewBytes = 1 << 16;
constexpr lamella_host_memory kMemory = {
    [](void*, size_t bytes, void** owner) -> void* {
      if (bytes < kFewBytes) return nullptr;
      const auto size = static_cast<int64_t>(bytes);
      const int64_t stride = 1;
      OwnedHandle made;
      void* data = nullptr;
      if (torch.aoti_torch_empty_strided(1, &size, &stride, 0, 0, -1, &made.handle) != 0 ||
          torch.aoti_torch_get_data_ptr(made.handle, &data) != 0) {
        return nullptr;
      }
      *owner = made.take();
      return data;
    },
    [](void* owner) { torch.aoti_torch_delete_tensor_object(owner); }, nullptr};

// The tensor of torch whose bytes a result lies in.
OwnedHandle tensor_of_bytes(const lamella_tensor* tensor, void* owner) {
  OwnedHandle made;
  done(torch.aoti_torch_new_tensor_handle(owner, &made.handle), "keeping a tensor");
  StableValue stack[] = {reinterpret_cast<StableValue>(made.take()), tensor->scalar_type};
  done(torch.aoti_torch_call_dispatcher("aten::view", "dtype", stack), "making a tensor");
  const OwnedHandle all(reinterpret_cast<Handle>(stack[0]));
  done(torch.aoti_torch__reinterpret_tensor(all.handle, tensor->ndim, tensor->sizes,
                                            tensor->strides, tensor->storage_offset, &made.handle),
       "making a tensor");
  return made;
}

}  // namespace

Handle exported(lamella_tensor* tensor) {
  if (torch.torch_from_blob == nullptr) {
    if (void* owner = lamella_tensor_host_memory(tensor, &kMemory)) {
      struct Release {
        lamella_tensor* tensor;
        ~Release() { release(tensor); }
      } owned{tensor};
      return tensor_of_bytes(tensor, owner).take();
    }
  }
  Handle made = nullptr;
  const int32_t device = tensor->device_type;
  const int32_t index = device == 0 ? -1 : tensor->device_index;
  int status;
  if (torch.torch_from_blob != nullptr && tensor->numel != 0) {
    status = torch.torch_from_blob(
        tensor->data, tensor->ndim, tensor->sizes, tensor->strides, 0, tensor->scalar_type, device,
        index, &made, 0, nullptr, 0,
        [](void*, void* kept) { release(static_cast<lamella_tensor*>(kept)); }, tensor);
    if (status != 0) release(tensor);
  } else {
    status = torch.aoti_torch_empty_strided(tensor->ndim, tensor->sizes, tensor->strides,
                                            tensor->scalar_type, device, index, &made);
    void* data = nullptr;
    if (status == 0 && tensor->numel != 0) {
      status = torch.aoti_torch_get_data_ptr(made, &data);
      std::memcpy(data, tensor->data,
                  lamella_tensor_storage_bytes(tensor) -
                      (static_cast<char*>(tensor->data) -
                       static_cast<char*>(lamella_tensor_storage_data(tensor))));
    }
    release(tensor);
  }
  done(status, "making a tensor");
  return made;
}

namespace {
// Parallel loops of kernels run on torch's threads, so that there are no more than it has.
constexpr lamella_host_threads kThreads = {
    [](void*, int32_t tasks, void (*task)(void*, int32_t), void* job) {
      struct Work {
        void (*task)(void*, int32_t);
        void* job;
      } work{task, job};
      auto some = [](int64_t from, int64_t to, void* context) {
        const Work& one = *static_cast<Work*>(context);
        for (int64_t n = from; n < to; ++n) one.task(one.job, static_cast<int32_t>(n));
      };
      if (torch.torch_parallel_for(0, tasks, 1, some, &work) != 0) some(0, tasks, &work);
    },
    [](void*) {
      uint32_t threads = 1;
      torch.torch_get_num_threads(&threads);
      return static_cast<int32_t>(threads);
    },
    nullptr};
}  // namespace

TorchThreads::TorchThreads()
    : is_set_(torch.torch_parallel_for != nullptr),
      before_(is_set_ ? lamella_set_host_threads(&kThreads) : nullptr),
      memory_(is_set_ && torch.torch_from_blob == nullptr ? lamella_set_host_memory(&kMemory)
                                                          : nullptr) {}
TorchThreads::~TorchThreads() {
  if (!is_set_) return;
  lamella_set_host_threads(before_);
  if (torch.torch_from_blob == nullptr) lamella_set_host_memory(memory_);
}

}  // namespace lamella::bridge
