// Python's C functions by dlsym, and failures as its errors.
#include "lamella/bridge/python.h"

#include <dlfcn.h>

#include "lamella/bridge/arrays.h"

namespace lamella::bridge {

Python python;

void open_python() {
  if (python.Py_IncRef != nullptr) return;
  auto find = [](const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) throw Failure(std::string("bridge: expected Python, without ") + name);
    return found;
  };
  Python made;
#define LAMELLA_FIND(name, ...) made.name = reinterpret_cast<decltype(made.name)>(find(#name));
  LAMELLA_PYTHON_FUNCTIONS(LAMELLA_FIND)
  LAMELLA_PYTHON_OBJECTS(LAMELLA_FIND)
#undef LAMELLA_FIND
#define LAMELLA_FIND(name) made.name = *static_cast<PyObject**>(find(#name));
  LAMELLA_PYTHON_VARIABLES(LAMELLA_FIND)
#undef LAMELLA_FIND
  python = made;
}

void set_python_error(lamella_status kind, const char* text) {
  if (kind == LAMELLA_FOREIGN_ERROR || kind == LAMELLA_LINALG_ERROR) {
    if (const lamella_python_table* table = lamella_module()) {
      table->raise(kind, text);
      return;
    }
  }
  PyObject* const types[] = {python.PyExc_RuntimeError, python.PyExc_RuntimeError,
                             python.PyExc_IndexError,   python.PyExc_ValueError,
                             python.PyExc_TypeError,    python.PyExc_NotImplementedError,
                             python.PyExc_MemoryError};
  const auto at = static_cast<size_t>(kind);
  python.PyErr_SetString(types[at < std::size(types) ? at : 0], text);
}

}  // namespace lamella::bridge
