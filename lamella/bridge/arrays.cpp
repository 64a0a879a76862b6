// Arrays of Python's packages as tensors of Lamella, and back.
#include "lamella/bridge/arrays.h"

#include <cstring>
#include <memory>

#include "lamella/bridge/torch_functions.h"
#include "lamella/core/device.h"
#include "lamella/core/dlpack_types.h"

namespace lamella::bridge {
namespace {

// Functions and types of bridge/_arrays.py, and the kinds so far.
PyObject* find_kind = nullptr;  // type -> (how, is it PyTorch's, capsule of the table, maker)
PyObject* capsule_of = nullptr;
PyObject* exporter = nullptr;
const lamella_python_table* module_table = nullptr;
std::vector<std::unique_ptr<ArrayKind>> kinds;
const ArrayKind* latest = nullptr;

void release_object(void* object) {
  if (has_gil) return python.Py_DecRef(static_cast<PyObject*>(object));
  const int state = python.PyGILState_Ensure();
  python.Py_DecRef(static_cast<PyObject*>(object));
  python.PyGILState_Release(state);
}

OwnedTensor over(const DLTensor& t, void (*deleter)(void*), void* context) {
  struct Guard {
    void (*deleter)(void*);
    void* context;
    ~Guard() {
      if (deleter != nullptr) deleter(context);
    }
  } guard{deleter, context};
  const dlpack::TypeRow* row = dlpack::find_type(t.dtype);
  if (row == nullptr) {
    throw Failure("bridge.dlpack: expected a dtype that Lamella has, got DLPack's code " +
                      std::to_string(t.dtype.code) + " of " + std::to_string(t.dtype.bits) +
                      " bits",
                  LAMELLA_TYPE_ERROR);
  }
  const bool is_cpu = t.device.device_type == kDLCPU || t.device.device_type == kDLCUDAHost;
  if (!is_cpu && t.device.device_type != kDLCUDA) {
    throw Failure("bridge.dlpack: expected an array on the CPU or on CUDA, got DLPack's device " +
                      std::to_string(static_cast<int>(t.device.device_type)),
                  LAMELLA_TYPE_ERROR);
  }
  const uintptr_t data = reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
  const size_t unit = t.dtype.bits / (t.dtype.code == kDLComplex ? 16 : 8);
  if (is_cpu && unit > 1 && data % unit != 0) {
    throw Failure("bridge.dlpack: expected elements at addresses that their size divides");
  }
  lamella_tensor* made = nullptr;
  guard.deleter = nullptr;  // from here on the tensor's
  check(lamella_tensor_from_blob(
      reinterpret_cast<void*>(data), t.ndim, t.shape, t.strides, static_cast<uint8_t>(row->type),
      static_cast<uint8_t>(is_cpu ? DeviceType::CPU : DeviceType::CUDA),
      static_cast<int8_t>(is_cpu ? -1 : t.device.device_id), deleter, context, &made));
  return OwnedTensor(made);
}

template <class Managed>
OwnedTensor taken(Managed* managed) {
  return over(
      managed->dl_tensor,
      [](void* context) {
        auto* m = static_cast<Managed*>(context);
        if (m->deleter != nullptr) m->deleter(m);
      },
      managed);
}

OwnedTensor from_capsule(PyObject* array, bool* is_read_only) {
  const Ref capsule = call_python(capsule_of, array);
  if (python.PyCapsule_IsValid(capsule.get(), "dltensor_versioned") != 0) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(
        python.PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
    if (managed->version.major != DLPACK_MAJOR_VERSION) {
      throw Failure("bridge.dlpack: expected DLPack 1, got " +
                    std::to_string(managed->version.major));
    }
    python.PyCapsule_SetName(capsule.get(), "used_dltensor_versioned");
    *is_read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    return taken(managed);
  }
  auto* managed =
      static_cast<DLManagedTensor*>(python.PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (managed == nullptr) throw PythonError();
  python.PyCapsule_SetName(capsule.get(), "used_dltensor");
  return taken(managed);
}

// A managed tensor of DLPack, which owns one of Lamella.
template <class Managed>
struct Exported {
  Managed managed{};
  OwnedTensor tensor;
  int64_t* geometry() { return reinterpret_cast<int64_t*>(this + 1); }
};
template <class Managed>
Managed* managed_of(OwnedTensor tensor) {
  lamella_tensor* t = tensor.get();
  const dlpack::TypeRow* row = dlpack::find_type(static_cast<ScalarType>(t->scalar_type));
  const auto device = static_cast<DeviceType>(t->device_type);
  if (row == nullptr || (device != DeviceType::CPU && device != DeviceType::CUDA)) {
    throw Failure("bridge.dlpack: expected a result of a dtype and on a device that DLPack has");
  }
  using Made = Exported<Managed>;
  const auto ndim = static_cast<size_t>(t->ndim);
  auto* made = new (::operator new(sizeof(Made) + 2 * ndim * sizeof(int64_t))) Made;
  int64_t *shape = made->geometry(), *strides = shape + ndim;
  for (size_t i = 0; i < ndim; ++i) {
    shape[i] = t->sizes[i];
    // The stride of a dimension of size 0 or 1 is never used; consumers expect 1.
    strides[i] = shape[i] < 2 ? 1 : t->strides[i];
  }
  DLDevice place{device == DeviceType::CPU ? kDLCPU : kDLCUDA,
                 t->device_index < 0 ? 0 : t->device_index};
  made->managed.dl_tensor = {t->data, place, t->ndim, dlpack::type_of(*row), shape, strides, 0};
  made->managed.manager_ctx = made;
  made->managed.deleter = [](Managed* managed) {
    auto* own = static_cast<Made*>(managed->manager_ctx);
    own->~Made();
    ::operator delete(own);
  };
  made->tensor = std::move(tensor);
  return &made->managed;
}

template <class Managed>
void delete_unused(PyObject* capsule, const char* name) {
  if (python.PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(python.PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

DLManagedTensorVersioned* versioned(OwnedTensor tensor, bool is_read_only) {
  auto* managed = managed_of<DLManagedTensorVersioned>(std::move(tensor));
  managed->version = {DLPACK_MAJOR_VERSION, 0};
  managed->flags = is_read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return managed;
}

// What _arrays.Exporter holds: a tensor, and whether it is read-only.
struct Holder {
  OwnedTensor tensor;
  bool is_read_only;
};

}  // namespace

const lamella_python_table* lamella_module() { return module_table; }

const ArrayKind* array_kind(PyObject* object) {
  PyObject* type = type_of(object);
  if (latest != nullptr && latest->type == type) return latest;
  for (const auto& kind : kinds) {
    if (kind->type != type) continue;
    if (kind->how == ArrayKind::How::kNone) return nullptr;
    return latest = kind.get();
  }
  if (type == python.PyFloat_Type || type == python.PyLong_Type || type == python.PyBool_Type ||
      type == python.PyUnicode_Type || type == python.PyList_Type || type == python.PyTuple_Type ||
      object == python._Py_NoneStruct) {
    return nullptr;
  }
  auto made = std::make_unique<ArrayKind>();
  const Ref found = call_python(find_kind, type);
  auto item = [&](PySize i) { return python.PyTuple_GetItem(found.get(), i); };
  made->how = static_cast<ArrayKind::How>(python.PyLong_AsLongLong(item(0)));
  made->is_torch = python.PyObject_IsTrue(item(1)) != 0;
  if (made->how == ArrayKind::How::kExchange) {
    made->table = static_cast<const ExchangeTable*>(
        python.PyCapsule_GetPointer(item(2), "dlpack_exchange_api"));
    if (made->table == nullptr) python.PyErr_Clear();
    while (made->table != nullptr && made->table->major_version != DLPACK_MAJOR_VERSION) {
      made->table = made->table->earlier;
    }
    if (made->table == nullptr) made->how = ArrayKind::How::kCapsule;
  }
  made->make = Ref::borrow(item(3)).take();
  made->type = Ref::borrow(type).take();
  kinds.push_back(std::move(made));
  return array_kind(object);
}

OwnedTensor tensor_of(const ArrayKind& kind, PyObject* array, bool* is_read_only,
                      bool with_gradients) {
  *is_read_only = false;
  switch (kind.how) {
    case ArrayKind::How::kLamella: {
      lamella_tensor* t = nullptr;
      module_table->read_tensor(array, &t);
      return OwnedTensor::borrow(t);
    }
    case ArrayKind::How::kExchange:
      // DLPack has no form for PyTorch's lazily negated, conjugated or differentiated tensors.
      if (kind.is_torch) {
        Handle handle = plain_torch_handle(array, with_gradients);
        if (handle == nullptr) break;
        python.Py_IncRef(array);
        return OwnedTensor(imported(handle, &release_object, array));
      }
      if (kind.table->borrow != nullptr) {
        DLTensor t{};
        if (kind.table->borrow(array, &t) != 0) throw PythonError();
        python.Py_IncRef(array);
        return over(t, &release_object, array);
      } else {
        DLManagedTensorVersioned* managed = nullptr;
        if (kind.table->from_object(array, &managed) != 0) throw PythonError();
        *is_read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
        return taken(managed);
      }
    default:
      break;
  }
  return from_capsule(array, is_read_only);
}

Ref array_of(const ArrayKind& kind, OwnedTensor tensor, bool is_read_only) {
  if (kind.how == ArrayKind::How::kLamella) {
    return Ref::need(module_table->wrap_tensor(tensor.take()));
  }
  if (kind.is_torch && can_wrap_torch()) return wrap_torch(exported(tensor.take()));
  if (kind.how == ArrayKind::How::kExchange) {
    void* made = nullptr;
    // The tensor is the other library's from here on, whatever it answers.
    if (kind.table->to_object(versioned(std::move(tensor), is_read_only), &made) != 0) {
      throw PythonError();
    }
    return Ref(static_cast<PyObject*>(made));
  }
  auto* holder = new Holder{std::move(tensor), is_read_only};
  const Ref held = Ref::need(python.PyCapsule_New(holder, "lamella_holder", [](PyObject* capsule) {
    delete static_cast<Holder*>(python.PyCapsule_GetPointer(capsule, "lamella_holder"));
  }));
  const bool is_cuda = holder->tensor.get()->device_type == static_cast<uint8_t>(DeviceType::CUDA);
  const Ref device = Ref::need(python.PyLong_FromLongLong(is_cuda ? kDLCUDA : kDLCPU));
  const Ref index = Ref::need(python.PyLong_FromLongLong(
      is_cuda ? std::max<int>(holder->tensor.get()->device_index, 0) : 0));
  return call_python(kind.make, call_python(exporter, held.get(), device.get(), index.get()).get());
}

}  // namespace lamella::bridge

using namespace lamella::bridge;

// Finds Python's functions. The objects are those of bridge/_arrays.py; table: the address of
// lamella._C's, or NULL.
LAMELLA_BRIDGE_API lamella_status lamella_bridge_python_open(PyObject* of_type, PyObject* of_array,
                                                             PyObject* exporter_type,
                                                             const lamella_python_table* table) {
  return guarded([&] {
    open_python();
    find_kind = Ref::borrow(of_type).take();
    capsule_of = Ref::borrow(of_array).take();
    exporter = Ref::borrow(exporter_type).take();
    module_table = table;
  });
}

// The capsule of DLPack for what an Exporter holds.
LAMELLA_BRIDGE_API PyObject* lamella_bridge_python_capsule(PyObject* held, int32_t is_versioned) {
  return python_guarded([&] {
    auto* holder = static_cast<Holder*>(python.PyCapsule_GetPointer(held, "lamella_holder"));
    if (holder == nullptr) throw PythonError();
    OwnedTensor tensor = OwnedTensor::borrow(holder->tensor.get());
    if (is_versioned != 0) {
      return Ref::need(python.PyCapsule_New(
          versioned(std::move(tensor), holder->is_read_only), "dltensor_versioned",
          [](PyObject* c) { delete_unused<DLManagedTensorVersioned>(c, "dltensor_versioned"); }));
    }
    if (holder->is_read_only) {
      throw Failure(
          "bridge.dlpack: expected writable memory, which is all that DLPack before 1 "
          "knows, got read-only");
    }
    return Ref::need(
        python.PyCapsule_New(managed_of<DLManagedTensor>(std::move(tensor)), "dltensor",
                             [](PyObject* c) { delete_unused<DLManagedTensor>(c, "dltensor"); }));
  });
}

// The results of a chain of transforms on a list of arrays of one kind.
LAMELLA_BRIDGE_API PyObject* lamella_bridge_python_chain(const char* text, PyObject* arrays) {
  return python_guarded([&] {
    const Chain chain(text);
    Tensors given;
    std::vector<lamella_tensor*> xs;
    const ArrayKind* kind = nullptr;
    for (PySize i = 0; i < python.PyList_Size(arrays); ++i) {
      PyObject* one = python.PyList_GetItem(arrays, i);
      bool is_read_only = false;
      kind = array_kind(one);
      if (kind == nullptr) throw Failure("bridge: expected arrays", LAMELLA_TYPE_ERROR);
      given.push_back(tensor_of(*kind, one, &is_read_only));
      xs.push_back(given.back().get());
    }
    Tensors results = chain.run(xs);
    Ref made = Ref::need(python.PyList_New(static_cast<PySize>(results.size())));
    for (size_t i = 0; i < results.size(); ++i) {
      Ref one = array_of(*kind, std::move(results[i]), false);
      python.PyList_SetItem(made.get(), static_cast<PySize>(i), one.take());
    }
    return made;
  });
}
