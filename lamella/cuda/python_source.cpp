// Asks the interpreter of the process, if there is one, by the functions of its C interface.
#include "lamella/cuda/python_source.h"

#include <dlfcn.h>

#include <cstring>

#include "lamella/core/error.h"

namespace lamella::cuda {
namespace {

struct Interpreter {
  using Object = void*;
  int (*holds_lock)() = nullptr;
  Object (*frame)() = nullptr;        // borrowed
  Object (*outer)(Object) = nullptr;  // the following are owned
  Object (*code)(Object) = nullptr;
  int (*line)(Object) = nullptr;
  Object (*attribute)(Object, const char*) = nullptr;
  const char* (*text)(Object) = nullptr;
  void (*release)(Object) = nullptr;
  bool works = true;

  template <class F>
  void find(F& to, const char* name) {
    to = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
    works = works && to != nullptr;
  }
  Interpreter() {
    find(holds_lock, "PyGILState_Check");
    find(frame, "PyEval_GetFrame");
    find(outer, "PyFrame_GetBack");
    find(code, "PyFrame_GetCode");
    find(line, "PyFrame_GetLineNumber");
    find(attribute, "PyObject_GetAttrString");
    find(text, "PyUnicode_AsUTF8");
    find(release, "Py_DecRef");
  }
};

}  // namespace

std::string python_source() {
  static const auto* python = new Interpreter();
  if (!python->works || python->holds_lock() == 0) return "";
  std::string found;
  void* frame = python->frame();
  for (bool owned = false; frame != nullptr && found.empty(); owned = true) {
    void* code = python->code(frame);
    void* file = python->attribute(code, "co_filename");
    const char* path = file != nullptr ? python->text(file) : nullptr;
    if (path != nullptr && std::strstr(path, "/lamella/") == nullptr) {
      const char* name = std::strrchr(path, '/');
      found = str(name != nullptr ? name + 1 : path, ":", python->line(frame));
    }
    python->release(file);
    python->release(code);
    void* outer = found.empty() ? python->outer(frame) : nullptr;
    if (owned) python->release(frame);
    frame = outer;
  }
  return found;
}

}  // namespace lamella::cuda
