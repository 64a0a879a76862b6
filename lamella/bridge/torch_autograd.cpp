// Decides which calls of torch's operators need no kernel of autograd, and carries errors of Python
// through torch. It stands on torch's C functions and on symbols that are looked up by name.
//
// Note [Plain calls]
//   torch's C functions do not say whether a tensor requires a gradient, or which dispatch keys a
//   call has. A kernel in Python could ask, but takes longer than the whole call. So four functions
//   of libc10 are looked up by their names, and the offset of a tensor's dispatch keys is found by
//   comparing the memory of several tensors with the keys that Python prints for them. If a
//   function is missing or a value differs from Python's, no call counts as plain, and the kernel
//   in Python takes all calls.
#include <dlfcn.h>

#include <cstring>

#include "lamella/bridge/arrays.h"
#include "lamella/bridge/torch_functions.h"

// The names are pybind11's: see raise() in torch_functions.h.
namespace pybind11 {
class __attribute__((visibility("default"))) builtin_exception : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual void set_error() const = 0;
};
}  // namespace pybind11

namespace lamella::bridge {
namespace {

// An error that a kernel in Python raised on this thread, until it is raised again.
struct Kept {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
};
thread_local Kept kept;

class RaisedError : public pybind11::builtin_exception {
 public:
  RaisedError(lamella_status kind, const char* text, Kept error)
      : builtin_exception(text), kind_(kind), error_(error) {}
  void set_error() const override {
    if (error_.value != nullptr) {
      python.PyErr_SetObject(error_.type, error_.value);
      python.Py_DecRef(std::exchange(error_.value, nullptr));
      return;
    }
    set_python_error(kind_, what());
  }

 private:
  lamella_status kind_;
  mutable Kept error_;
};

// Functions and offsets of torch's tensors that its C functions do not give.
struct TensorLayout {
  bool is_known = false;
  uint64_t keys = 0;       // of a plain tensor on the CPU
  uint64_t inference = 0;  // of one that was made in inference mode
  size_t keys_at = 0;      // its word in a tensor
  size_t object_at = 0;    // the word of Python's object that points to its tensor
  uint16_t below[8] = {};  // keys between autograd and the CPU that may be on for a thread
  int32_t below_count = 0;
  bool (*is_included)(uint16_t key) = nullptr;
  bool (*requires_grad)(const void* tensor) = nullptr;
  const void* (*meta)(const void* tensor) = nullptr;
  void* (*tangent)(const void* tensor, uint64_t level, const void* handle) = nullptr;
  int (*is_defined)(void* handle, bool*) = nullptr;
  PyObject* (*wrap)(void* handle) = nullptr;  // NULL: unknown
} tensors;

Part part_for(Handle handle, bool grad_mode) {
  const char* tensor = *static_cast<const char* const*>(handle);
  uint64_t keys;
  std::memcpy(&keys, tensor + tensors.keys_at, sizeof keys);
  if (keys != tensors.keys) return Part::kOther;
  if (tensors.meta(tensor) == nullptr) return Part::kPlain;
  bool has_tangent = true;
  tensors.is_defined(tensors.tangent(tensor, 0, handle), &has_tangent);
  if (has_tangent) return Part::kOther;
  return grad_mode && tensors.requires_grad(tensor) ? Part::kGradient : Part::kPlain;
}

}  // namespace

void* plain_torch_handle(PyObject* object, bool with_gradients) {
  if (!tensors.is_known) return nullptr;
  char* handle = reinterpret_cast<char*>(object) + tensors.object_at;
  const char* tensor;
  std::memcpy(&tensor, handle, sizeof tensor);
  uint64_t keys;
  std::memcpy(&keys, tensor + tensors.keys_at, sizeof keys);
  if (keys != tensors.keys && keys != tensors.inference) return nullptr;
  const bool is_plain =
      with_gradients || tensors.meta(tensor) == nullptr || !tensors.requires_grad(tensor);
  return is_plain ? handle : nullptr;
}
bool can_wrap_torch() { return tensors.wrap != nullptr; }
Ref wrap_torch(void* handle) {
  const OwnedHandle owned(handle);
  return Ref::need(tensors.wrap(handle));
}

void raise(lamella_status kind, const char* text) { throw RaisedError(kind, text, {}); }
void raise_kept(const char* text) {
  throw RaisedError(LAMELLA_ERROR, text, std::exchange(kept, {}));
}

void raise_set() {
  Kept error;
  PyObject* trace = nullptr;
  python.PyErr_Fetch(&error.type, &error.value, &trace);
  python.PyErr_NormalizeException(&error.type, &error.value, &trace);
  for (PyObject* one : {error.type, trace}) {
    if (one != nullptr) python.Py_DecRef(one);  // the type is kept by the error
  }
  throw RaisedError(LAMELLA_ERROR, "an error of Python", error);
}
Handle handle_of(void* object) { return static_cast<char*>(object) + tensors.object_at; }

Part part_of_torch(const std::vector<Argument>& arguments, const StableValue* stack) {
  if (!tensors.is_known) return Part::kOther;
  for (int32_t i = 0; i < tensors.below_count; ++i) {
    if (tensors.is_included(tensors.below[i])) return Part::kOther;
  }
  const bool grad_mode = torch.aoti_torch_grad_mode_is_enabled();
  Part most = Part::kPlain;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& one = arguments[i];
    if (one.kind != Kind::kTensor && one.kind != Kind::kTensorList) continue;
    StableValue value = stack[i];
    if (one.optional) {
      if (value == 0) continue;
      value = *reinterpret_cast<StableValue*>(value);
    }
    auto* handle = reinterpret_cast<Handle>(value);
    if (one.kind == Kind::kTensor) {
      most = std::max(most, part_for(handle, grad_mode));
      continue;
    }
    size_t size = 0;
    done(torch.torch_list_size(handle, &size), "reading a list");
    for (size_t k = 0; k < size; ++k) {
      done(torch.torch_list_get_item(handle, k, &value), "reading a list");  // it stays the list's
      most = std::max(most, part_for(reinterpret_cast<Handle>(value), grad_mode));
    }
  }
  return most;
}

}  // namespace lamella::bridge

using namespace lamella::bridge;

// Finds what plain calls need. addresses: of tensors of torch, with their objects and dispatch
// keys; the first is plain, the second requires a gradient, the last is of inference mode. below:
// see TensorLayout. *is_done: whether all was found.
LAMELLA_BRIDGE_API lamella_status lamella_bridge_torch_plain(
    const char* libc10, const uint64_t* addresses, const uint64_t* objects, const uint64_t* keys,
    int32_t count, const uint16_t* below, int32_t below_count, int32_t* is_done) {
  return guarded([&] {
    *is_done = 0;
    TensorLayout made;
    void* library = dlopen(libc10, RTLD_NOLOAD | RTLD_LAZY);
    auto find = [&](auto& member, const char* name) {
      void* found = library != nullptr ? dlsym(library, name) : nullptr;
      if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
      member = reinterpret_cast<std::decay_t<decltype(member)>>(found);
      return found != nullptr;
    };
    bool ok =
        find(made.is_included, "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE") &&
        find(made.requires_grad, "_ZNK3c1010TensorImpl13requires_gradEv") &&
        find(made.meta, "_ZNK3c1010TensorImpl13autograd_metaEv") &&
        find(made.tangent, "_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE") &&
        below_count <= static_cast<int32_t>(std::size(made.below));
    made.is_defined = torch.aoti_torch_is_defined;
    if (!ok) return;
    // The first word that has the values in all of the places.
    auto place_of = [&](const uint64_t* places, const uint64_t* values, size_t bytes) {
      for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        int32_t i = 0;
        for (uint64_t word; i < count; ++i) {
          std::memcpy(&word, reinterpret_cast<const char*>(places[i]) + at, sizeof word);
          if (word != values[i]) break;
        }
        if (i == count) return at;
      }
      return bytes;
    };
    constexpr size_t kMostBytes = 192, kMostOfObject = 48;
    made.keys_at = place_of(addresses, keys, kMostBytes);
    made.object_at = place_of(objects, addresses, kMostOfObject);
    const bool is_found = made.keys_at < kMostBytes && made.object_at < kMostOfObject;
    auto tensor = [&](int32_t i) { return reinterpret_cast<const void*>(addresses[i]); };
    if (!is_found || made.requires_grad(tensor(0)) || !made.requires_grad(tensor(1)) ||
        made.meta(tensor(0)) != nullptr || made.meta(tensor(1)) == nullptr) {
      return;
    }
    // A handle points to a pointer to the tensor.
    OwnedHandle one;
    done(torch.aoti_torch_empty_strided(0, nullptr, nullptr, 6, 0, -1, &one.handle), "a tensor");
    made.keys = keys[0];
    made.inference = keys[count - 1];
    uint64_t word;
    std::memcpy(&word, *static_cast<const char**>(one.handle) + made.keys_at, sizeof word);
    if (word != made.keys) return;
    // The object of a tensor is the one that it came from.
    void* library_python = dlopen("libtorch_python.so", RTLD_NOLOAD | RTLD_LAZY);
    for (const char* form : {"ON2at10TensorBaseE", "RKN2at10TensorBaseE"}) {
      if (library_python == nullptr || made.wrap != nullptr) continue;
      const std::string name = std::string("_Z16THPVariable_Wrap") + form;
      auto* wrap = reinterpret_cast<PyObject* (*)(void*)>(dlsym(library_python, name.c_str()));
      if (wrap == nullptr) continue;
      OwnedHandle again;
      done(torch.aoti_torch_new_tensor_handle(reinterpret_cast<char*>(objects[0]) + made.object_at,
                                              &again.handle),
           "keeping a tensor");
      const int state = python.PyGILState_Ensure();
      {
        const Ref object(wrap(again.handle));
        if (reinterpret_cast<uint64_t>(object.get()) == objects[0]) made.wrap = wrap;
      }
      python.PyGILState_Release(state);
    }
    made.below_count = below_count;
    std::copy(below, below + below_count, made.below);
    made.is_known = true;
    tensors = made;
    *is_done = 1;
  });
}

// Keeps an error that a kernel in Python raises, for raise_kept(). With the GIL.
LAMELLA_BRIDGE_API void lamella_bridge_torch_keep(PyObject* type, PyObject* value) {
  if (kept.value != nullptr) python.Py_DecRef(kept.value);
  kept = {type, Ref::borrow(value).take()};
}
