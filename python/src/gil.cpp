// The GIL: released around work, taken by C++ code that calls Python; and signals, which Python
// handles with it.
//
// Note [Threads at the interpreter's end]
//   When the interpreter ends, daemon threads and C++ threads may be inside of Lamella. Python
//   (before 3.14) then ends a thread that asks for the GIL by unwinding its stack, which must not
//   pass through C++: destructors would touch Python's objects without the GIL, and noexcept
//   functions would terminate the process. So such a thread blocks until the process has ended. A
//   call into Python from C++ is a noexcept function; the handler of std::terminate, which
//   unwinding calls there, blocks the thread.
#include <cxxabi.h>
#include <unistd.h>

#include <exception>

#include "lamella/core/fork.h"
#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/blas_library.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace lamella::python {
namespace {

// The number of threads that work after releasing the GIL. A thread that waits for the GIL, or
// holds it again for a hook, is not counted, as it does not touch tensors meanwhile. The count is
// raised before the GIL is released, so that it does not rise while another thread holds the GIL.
std::atomic<int> working{0};
thread_local bool gave_up = false;

// The thread that ends the interpreter, once it has started to.
std::atomic<unsigned long> ending_thread{0};

bool is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
// Whether the interpreter is ending or has ended, and this is not the thread that ends it.
bool must_stay() {
  return (Py_IsInitialized() == 0 || is_ending()) &&
         ending_thread.load(std::memory_order_relaxed) != PyThread_get_thread_ident();
}
[[noreturn]] void stay() {
  // A thread that deregisters something must not wait for the call that this thread is in.
  __atomic_store_n(&lamella_thread.readers, 0, __ATOMIC_RELEASE);
  while (true) pause();
}

// Calls f(), which takes the GIL. Python may try to end the thread meanwhile.
template <class F>
void taking_gil(F&& f) {
  if (must_stay()) stay();
  try {
    f();
  } catch (const ::abi::__forced_unwind&) {
    stay();
  }
}

std::terminate_handler terminate_before = nullptr;
[[noreturn]] void terminate() {
  if (must_stay()) stay();
  terminate_before();
  abort();
}

// ---- Signals ----

// The identity of Python's main thread, the only one that runs signal handlers. It is looked up
// during the import of the module, as the lookup runs Python code, in which a handler could run and
// raise. If `threading` has not been imported, there is no other Python thread, and importing it
// would be slow.
std::atomic<unsigned long> main_thread{0};

bool find_main_thread() {
  Ref name(PyUnicode_FromString("threading"));
  Ref module(name ? PyImport_GetModule(name.get()) : nullptr);
  if (!module) {
    main_thread.store(PyThread_get_thread_ident(), std::memory_order_relaxed);
    return PyErr_Occurred() == nullptr;
  }
  Ref thread(PyObject_CallMethod(module.get(), "main_thread", nullptr));
  Ref ident(thread ? PyObject_GetAttrString(thread.get(), "ident") : nullptr);
  if (!ident) return false;
  main_thread.store(PyLong_AsUnsignedLong(ident.get()), std::memory_order_relaxed);
  return PyErr_Occurred() == nullptr;
}

lamella_status ask_python() {
  if (main_thread.load(std::memory_order_relaxed) != PyThread_get_thread_ident() ||
      Py_IsInitialized() == 0) {
    return LAMELLA_OK;
  }
  GilScope gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyErr_CheckSignals() == 0) {
    PyErr_Restore(type, value, traceback);
    return LAMELLA_OK;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return keep_python_error();
}

PyObject* begin_end(PyObject*, PyObject*) {
  ending_thread.store(PyThread_get_thread_ident(), std::memory_order_relaxed);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_begin_end", begin_end, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyThreadState* release_gil() {
  begin_interruptible_call();
  gave_up = true;
  working.fetch_add(1, std::memory_order_relaxed);
  return PyEval_SaveThread();
}
void restore_gil(PyThreadState* released) {
  working.fetch_sub(1, std::memory_order_release);
  taking_gil([&] { PyEval_RestoreThread(released); });
  gave_up = false;
  end_waiting();
}

GilEntry enter_python() {
  GilEntry entry{std::exchange(gave_up, false), PyGILState_UNLOCKED};
  if (entry.inside) working.fetch_sub(1, std::memory_order_release);
  taking_gil([&] { entry.state = PyGILState_Ensure(); });
  return entry;
}
void leave_python(GilEntry entered) {
  if (must_stay()) stay();
  if (entered.inside) {
    working.fetch_add(1, std::memory_order_relaxed);
    gave_up = true;
  }
  PyGILState_Release(entered.state);
}

bool others_may_run() { return working.load(std::memory_order_acquire) != 0; }

// Prepares for interrupts and for the interpreter's end.
int add_gil(PyObject* module) {
  terminate_before = std::set_terminate(&terminate);
  if (!find_main_thread()) return -1;
  // The thread that forks is the child's main thread.
  fork::in_child([] { main_thread.store(PyThread_get_thread_ident(), std::memory_order_relaxed); });
  set_interrupt_function(&ask_python);
  // Runs when no thread can hold the GIL any more, and before the libraries free their memory.
  Py_AtExit(&native::close_blas_library);
  if (PyModule_AddFunctions(module, functions) != 0) return -1;
  Ref atexit(PyImport_ImportModule("atexit"));
  Ref begin(PyObject_GetAttrString(module, "_begin_end"));
  Ref done(atexit && begin ? PyObject_CallMethod(atexit.get(), "register", "O", begin.get())
                           : nullptr);
  return done ? 0 : -1;
}

}  // namespace lamella::python
