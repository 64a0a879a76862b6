// Profiles, for lamella/profiler.py, which is the public interface.
#include "lamella/abi/profiler.h"

#include "python/src/errors.h"
#include "python/src/ref.h"

namespace lamella::python {
namespace {

constexpr const char* kName = "lamella.profile";

lamella_profile* profile_of(PyObject* capsule) {
  return static_cast<lamella_profile*>(PyCapsule_GetPointer(capsule, kName));
}

PyObject* start(PyObject*, PyObject*) {
  if (lamella_profiler_start() != LAMELLA_OK)
    return raise_text(PyExc_RuntimeError, lamella_error_text());
  Py_RETURN_NONE;
}

PyObject* stop(PyObject*, PyObject*) {
  lamella_profile* profile = nullptr;
  if (lamella_profiler_stop(&profile) != LAMELLA_OK) {
    return raise_text(PyExc_RuntimeError, lamella_error_text());
  }
  return PyCapsule_New(profile, kName,
                       [](PyObject* capsule) { lamella_profile_free(profile_of(capsule)); });
}

// [(name, kind, arguments, start, duration and own time in nanoseconds, thread), ...].
PyObject* events(PyObject*, PyObject* capsule) {
  lamella_profile* profile = profile_of(capsule);
  if (profile == nullptr) return nullptr;
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  auto each = [](void* context, const lamella_profile_event* event) {
    if (PyErr_Occurred() != nullptr) return;
    Ref row(Py_BuildValue("(sssLLLI)", event->name, event->kind, event->arguments,
                          static_cast<long long>(event->start_ns),
                          static_cast<long long>(event->duration_ns),
                          static_cast<long long>(event->own_ns), event->thread));
    if (row) PyList_Append(static_cast<PyObject*>(context), row.get());
  };
  lamella_profile_each(profile, each, list.get());
  return PyErr_Occurred() != nullptr ? nullptr : list.release();
}

PyObject* table(PyObject*, PyObject* args) {
  PyObject* capsule;
  const char* sort_by;
  long long rows;
  if (!PyArg_ParseTuple(args, "OsL", &capsule, &sort_by, &rows)) return nullptr;
  lamella_profile* profile = profile_of(capsule);
  if (profile == nullptr) return nullptr;
  return PyUnicode_FromString(lamella_profile_table(profile, sort_by, rows));
}

PyObject* trace(PyObject*, PyObject* capsule) {
  lamella_profile* profile = profile_of(capsule);
  return profile == nullptr ? nullptr : PyUnicode_FromString(lamella_profile_trace(profile));
}

PyObject* enter(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  lamella_profiler_enter(text);
  Py_RETURN_NONE;
}

PyObject* leave(PyObject*, PyObject*) {
  lamella_profiler_leave();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_profiler_start", start, METH_NOARGS, nullptr},
                           {"_profiler_stop", stop, METH_NOARGS, nullptr},
                           {"_profile_events", events, METH_O, nullptr},
                           {"_profile_table", table, METH_VARARGS, nullptr},
                           {"_profile_trace", trace, METH_O, nullptr},
                           {"_profiler_enter", enter, METH_O, nullptr},
                           {"_profiler_leave", leave, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_profiler(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
