// The GIL: given up around work, taken by what C++ calls; and signals, which Python sees with it.
//
// Note [Threads at the interpreter's end]
//   When the interpreter ends, daemon threads and threads of C++ may be inside of Lamella. Python
//   (before 3.14) ends a thread that asks for the GIL then by unwinding its stack, which must not
//   pass through C++: destructors there would touch Python's objects without the GIL, and functions
//   that may not throw would end the process. So a thread that Python wants to end stays where it
//   is until the process is gone. A call into Python from C++ is a function that may not throw;
//   the handler of std::terminate, which unwinding reaches there, keeps the thread.
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

// Threads that gave the GIL up and work. One that waits for the GIL, or has it again for a hook,
// is none of them: it leaves all tensors alone until it goes on. The count rises while the thread
// still has the GIL, so that nobody with the GIL sees it rise.
std::atomic<int> working{0};
thread_local bool gave_up = false;

// The thread that ends the interpreter, once that has begun.
std::atomic<unsigned long> ending_thread{0};

bool is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
// Whether Python goes, or went, away while this thread is another one's.
bool must_stay() {
  return (Py_IsInitialized() == 0 || is_ending()) &&
         ending_thread.load(std::memory_order_relaxed) != PyThread_get_thread_ident();
}
[[noreturn]] void stay() {
  // Who deregisters something need not wait for the call that this thread is in.
  __atomic_store_n(&lamella_thread.readers, 0, __ATOMIC_RELEASE);
  while (true) pause();
}

// f(), which takes the GIL or has it. Python may want to end the thread meanwhile.
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

// The identity of Python's main thread, which alone runs handlers of signals. It is found while the
// module is imported: to find it runs code of Python, where a handler would run and its exception
// appear. As long as nobody has imported `threading`, there is no other thread of Python, and to
// import it would take longer than all the rest.
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

int add_gil(PyObject* module) {
  terminate_before = std::set_terminate(&terminate);
  if (!find_main_thread()) return -1;
  // The thread that forks is the child's main thread.
  fork::in_child([] { main_thread.store(PyThread_get_thread_ident(), std::memory_order_relaxed); });
  set_interrupt_function(&ask_python);
  // When nobody can have the GIL any more, and before the libraries take their memory down.
  Py_AtExit(&native::close_blas_library);
  if (PyModule_AddFunctions(module, functions) != 0) return -1;
  Ref atexit(PyImport_ImportModule("atexit"));
  Ref begin(PyObject_GetAttrString(module, "_begin_end"));
  Ref done(atexit && begin ? PyObject_CallMethod(atexit.get(), "register", "O", begin.get())
                           : nullptr);
  return done ? 0 : -1;
}

}  // namespace lamella::python
