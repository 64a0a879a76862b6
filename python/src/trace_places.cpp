// Source locations of calls in Python: a code object and an offset, resolved to a line on demand.
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>

#include "python/src/errors.h"
#include "python/src/trace.h"

#include <frameobject.h>  // after Python.h

namespace lamella::python {
namespace {

// Code of the user, of this package, and of the function that runs traces, at which the search for
// the user's code ends.
enum class Kind : uint8_t { kUser, kPackage, kBoundary };

struct CodeLocation {
  PyCodeObject* code;  // kept alive by the store
  int at;              // offset of the instruction; in old interpreters, the line as -1 - line
};

struct Store : lamella_object {
  std::vector<CodeLocation> places;
  std::unordered_map<PyCodeObject*, Kind> codes;  // each holds a reference
  std::string package;                            // folder of this package, with a slash
  std::string boundary;
};

struct Gil {
  std::optional<GilScope> scope;
  Gil() {
    if (PyGILState_Check() == 0) scope.emplace();
  }
};

void destroy(lamella_object* object) {
  auto* store = static_cast<Store*>(object);
  if (Py_IsInitialized() != 0) {
    Gil gil;
    for (auto& [code, kind] : store->codes) Py_DECREF(code);
  }
  delete store;
}

lamella_object* make_store() {
  if (Py_IsInitialized() == 0) return nullptr;
  Gil gil;
  auto* store = new Store;
  store->references = 1;
  store->reserved = 0;
  store->destroy = destroy;
  Ref module(PyImport_ImportModule("lamella"));
  Ref file(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
  if (file) store->package = text_of(file.get());
  PyErr_Clear();
  store->package.resize(store->package.rfind('/') + 1);
  store->boundary = store->package + "_trace.py";
  return store;
}

Kind kind_of_code(Store* store, PyCodeObject* code) {
  auto found = store->codes.find(code);
  if (found != store->codes.end()) return found->second;
  std::string file = text_of(code->co_filename);
  Kind kind = file == store->boundary                                         ? Kind::kBoundary
              : !store->package.empty() && file.rfind(store->package, 0) == 0 ? Kind::kPackage
                                                                              : Kind::kUser;
  Py_INCREF(code);
  store->codes.emplace(code, kind);
  return kind;
}

int offset_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return -1 - PyFrame_GetLineNumber(frame);
#endif
}

// The innermost call outside of this package, or the innermost one of all if there is none.
uint32_t capture(lamella_object* object) {
  auto* store = static_cast<Store*>(object);
  Gil gil;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (frame == nullptr) return tracing::kNoPlace;
  CodeLocation place{nullptr, 0};
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Kind kind = kind_of_code(store, code);
    Py_DECREF(code);
    if (kind != Kind::kBoundary && (kind == Kind::kUser || place.code == nullptr)) {
      place = {code, offset_of(frame)};
    }
    PyFrameObject* back = kind == Kind::kPackage ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  if (place.code == nullptr) return tracing::kNoPlace;
  if (!store->places.empty()) {
    const CodeLocation& last = store->places.back();
    if (last.code == place.code && last.at == place.at) {
      return static_cast<uint32_t>(store->places.size() - 1);
    }
  }
  store->places.push_back(place);
  return static_cast<uint32_t>(store->places.size() - 1);
}

tracing::SourceLocation describe(lamella_object* object, uint32_t number) {
  auto* store = static_cast<Store*>(object);
  if (number >= store->places.size() || Py_IsInitialized() == 0) return {};
  Gil gil;
  const CodeLocation& place = store->places[number];
  int line = place.at < 0 ? -1 - place.at : PyCode_Addr2Line(place.code, place.at);
  return {text_of(place.code->co_filename), line};
}

}  // namespace

void install_place_hooks() { tracing::set_place_hooks({make_store, capture, describe}); }

}  // namespace lamella::python
