// Targets of custom calls from Python: addresses of C functions, and Python functions.
//
// Note [Python functions as targets]
//   Such a function is called with a Tensor for each array of the operands, tuples flattened, which
//   it may write to; it returns objects that convert to the arrays of the result. Its exception
//   ends the run and reaches the caller unchanged. It runs with the GIL, on the thread of the run.
#include <dlfcn.h>
#include <link.h>

#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

// A reference to an object that a thread without the GIL may release.
std::shared_ptr<void> shared_object(PyObject* object) {
  Py_INCREF(object);
  return {object, [](void* last) {
            // After the interpreter's end there is nothing left to release.
            if (!Py_IsInitialized()) return;
            GilScope gil;
            Py_DECREF(static_cast<PyObject*>(last));
          }};
}

// Carries the pending Python error through C++.
[[noreturn]] void throw_python_error() {
  keep_python_error();
  throw lamella::ForeignError(lamella_error_text());
}

class PythonCall final : public hlo::PreparedCall {
 public:
  PythonCall(const hlo::Instruction& instruction, hlo::TargetPointer target)
      : instruction_(instruction),
        target_(std::move(target)),
        opaque_(hlo::opaque_of(instruction)),
        results_(hlo::array_leaves(*instruction.shape)) {}

  hlo::Value run(std::span<hlo::Value> operands, hlo::RunContext&) override {
    GilScope gil;
    try {
      return call(operands);
    } catch (const PythonError&) {
      throw_python_error();
    }
  }

 private:
  hlo::Value call(std::span<hlo::Value> operands) {
    std::vector<TensorBase> tensors;
    for (hlo::Value& operand : operands) {
      for (TensorBase& one : hlo::tensors_of_value(std::move(operand))) {
        tensors.push_back(std::move(one));
      }
    }
    Ref list(list_of(std::move(tensors)));
    Ref given(required(PyList_AsTuple(list.get())));
    Ref shape(shape_object(*instruction_.shape));
    auto* function = static_cast<PyObject*>(target_->context.get());
    Ref returned(
        required(PyObject_CallFunction(function, "Oy#O", given.get(), opaque_.data(),
                                       static_cast<Py_ssize_t>(opaque_.size()), shape.get())));
    std::vector<hlo::Value> leaves = values_of(returned.get());
    size_t next = 0;
    return hlo::value_of_leaves(instruction_.shape, leaves, &next);
  }

  std::vector<hlo::Value> values_of(PyObject* returned) {
    // A single result need not be in a tuple.
    bool many = instruction_.shape->is_tuple();
    Ref items;
    if (many && (PyTuple_Check(returned) || PyList_Check(returned))) {
      items = Ref(required(PySequence_Tuple(returned)));
    } else if (returned == Py_None && results_.empty()) {
      items = Ref(required(PyTuple_New(0)));
    } else {
      items = Ref(required(PyTuple_Pack(1, returned)));
    }
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(items.get()));
    LAMELLA_HLO_REQUIRE(count == results_.size(), instruction_, "target '", target_->name,
                        "': expected ", results_.size(),
                        results_.size() == 1 ? " result, got " : " results, got ", count);
    std::vector<hlo::Value> values;
    for (size_t i = 0; i < count; ++i) {
      std::string got;
      values.push_back(value_from(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)),
                                  results_[i], target_->name.c_str(), &got));
      LAMELLA_HLO_REQUIRE(values.back(), instruction_, "target '", target_->name,
                          "': expected result ", i, " to be ", results_[i]->to_string(false),
                          ", got ", got);
    }
    return values;
  }

  const hlo::Instruction& instruction_;
  hlo::TargetPointer target_;
  std::string opaque_;
  std::vector<const hlo::Shape*> results_;
};

std::unique_ptr<hlo::PreparedCall> make_python_call(const hlo::Instruction& instruction,
                                                    hlo::TargetPointer target) {
  return std::make_unique<PythonCall>(instruction, std::move(target));
}

// ---- Registering -------------------------------------------------------------------------------

PyObject* put_target(hlo::Target target, bool replace) {
  {
    WithoutGil others;
    if (replace) {
      hlo::replace_target(std::move(target));
    } else {
      hlo::register_target(std::move(target));
    }
  }
  Py_RETURN_NONE;
}

// (name, address, platform, where, replace)
PyObject* register_function(PyObject*, PyObject* args) {
  const char *name, *platform, *where;
  PyObject* address;
  int replace;
  if (!PyArg_ParseTuple(args, "sO!ssp", &name, &PyLong_Type, &address, &platform, &where,
                        &replace)) {
    return nullptr;
  }
  return guarded([&] {
    hlo::Target target;
    target.name = name;
    target.platform = platform;
    target.function = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    target.where = where;
    return put_target(std::move(target), replace != 0);
  });
}

// (name, function, platform, where, replace): function(arrays, opaque, shape).
PyObject* register_callable(PyObject*, PyObject* args) {
  const char *name, *platform, *where;
  PyObject* function;
  int replace;
  if (!PyArg_ParseTuple(args, "sOssp", &name, &function, &platform, &where, &replace)) {
    return nullptr;
  }
  return guarded([&] {
    hlo::Target target;
    target.name = name;
    target.platform = platform;
    target.kind = hlo::TargetKind::Maker;
    target.function = reinterpret_cast<void*>(&make_python_call);
    target.make = make_python_call;
    target.context = shared_object(function);
    target.where = where;
    return put_target(std::move(target), replace != 0);
  });
}

// (name, platform): whether there was a target.
PyObject* remove(PyObject*, PyObject* args) {
  const char *name, *platform;
  if (!PyArg_ParseTuple(args, "ss", &name, &platform)) return nullptr;
  return guarded([&] {
    bool removed = false;
    {
      WithoutGil others;
      for (auto kind :
           {hlo::TargetKind::Function, hlo::TargetKind::Typed, hlo::TargetKind::Maker}) {
        removed |= hlo::remove_target(name, platform, kind);
      }
    }
    return PyBool_FromLong(removed ? 1 : 0);
  });
}

// ---- Listing -----------------------------------------------------------------------------------

const char* kind_name(hlo::TargetKind kind) {
  switch (kind) {
    case hlo::TargetKind::Function:
      return "function";
    case hlo::TargetKind::Typed:
      return "typed";
    case hlo::TargetKind::Maker:
      return "python";
  }
  return "";
}

// The location of a function: its library, and its offset there, which is the same in any process.
PyObject* place_of(void* function) {
  Dl_info info;
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) {
    Py_RETURN_NONE;
  }
  auto offset = static_cast<const char*>(function) - static_cast<const char*>(info.dli_fbase);
  return required(Py_BuildValue("[sL]", info.dli_fname, static_cast<long long>(offset)));
}

void put(PyObject* dictionary, const char* key, PyObject* owned) {
  Ref value(required(owned));
  if (PyDict_SetItemString(dictionary, key, value.get()) != 0) throw PythonError();
}

PyObject* list_targets(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list(required(PyList_New(0)));
    for (const hlo::TargetPointer& target : hlo::list_targets()) {
      Ref entry(required(PyDict_New())), places(required(PyDict_New()));
      put(entry.get(), "name", text_object(target->name));
      put(entry.get(), "platform", text_object(target->platform));
      put(entry.get(), "kind", text_object(kind_name(target->kind)));
      put(entry.get(), "where", text_object(target->where));
      put(entry.get(), "built_in", PyBool_FromLong(target->built_in ? 1 : 0));
      bool is_python = target->make == make_python_call;
      put(entry.get(), "function",
          Ref::borrow(is_python ? static_cast<PyObject*>(target->context.get()) : Py_None)
              .release());
      if (!is_python) {
        put(places.get(), "execute", place_of(target->function));
        put(places.get(), "instantiate", place_of(target->instantiate));
        put(places.get(), "prepare", place_of(target->prepare));
        put(places.get(), "initialize", place_of(target->initialize));
      }
      put(entry.get(), "places", places.release());
      if (PyList_Append(list.get(), entry.get()) != 0) throw PythonError();
    }
    return list.release();
  });
}

// (library, offset): the address of an offset in a library, which is loaded if necessary.
PyObject* address_of(PyObject*, PyObject* args) {
  const char* library;
  long long offset;
  if (!PyArg_ParseTuple(args, "sL", &library, &offset)) return nullptr;
  return guarded([&] {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    LAMELLA_CHECK(handle != nullptr, "hlo: expected a library, got ", dlerror());
    // The library stays loaded, as the caller is going to call the function.
    link_map* map = nullptr;
    LAMELLA_CHECK(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0, "hlo: ", dlerror());
    return required(
        PyLong_FromVoidPtr(reinterpret_cast<void*>(map->l_addr + static_cast<uintptr_t>(offset))));
  });
}

PyMethodDef functions[] = {{"_register_function", register_function, METH_VARARGS, nullptr},
                           {"_register_callable", register_callable, METH_VARARGS, nullptr},
                           {"_remove_target", remove, METH_VARARGS, nullptr},
                           {"_list_targets", list_targets, METH_NOARGS, nullptr},
                           {"_address_of", address_of, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_targets(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
