// Watching a Python function while it runs: the operands of its instructions.
//
// A code object has a table, two numbers for each instruction: how many objects on top of the stack
// the instruction reads (kIgnored: it reads nothing of interest), and the depth of the stack before
// it. lamella/_compile_reads.py makes the tables and handles the instructions.
#include <cstring>
#include <memory>
#include <unordered_map>

#include "python/src_hlo/compiled_outside.h"

#include <frameobject.h>

namespace lamella::python {
namespace {

constexpr uint16_t kIgnored = 0xFFFF;

// ---- Frames of each Python version --------------------------------------------------------------

// Where the local variables of a frame begin, which the stack follows.
PyObject** locals_of(PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030B0000
  return frame->f_localsplus;
#else
  // PyFrameObject and the interpreter's own frame, both in CPython's internal headers.
  struct Outer {
    PyObject_HEAD PyFrameObject* back;
    void** inner;
  };
  constexpr size_t kLocals = PY_VERSION_HEX < 0x030E0000 ? 9 : 10;
  return reinterpret_cast<PyObject**>(reinterpret_cast<Outer*>(frame)->inner + kLocals);
#endif
}
// NULL for an empty slot, and for a number that is stored in the slot itself.
PyObject* in_slot(PyObject* const* slot) {
#if PY_VERSION_HEX < 0x030E0000
  return *slot;
#else
  auto bits = reinterpret_cast<uintptr_t>(*slot);
  return (bits & 3) == 3 ? nullptr : reinterpret_cast<PyObject*>(bits & ~uintptr_t{3});
#endif
}
// In instructions of two bytes.
size_t place_of(PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030A0000
  return static_cast<size_t>(frame->f_lasti) / 2;
#elif PY_VERSION_HEX < 0x030B0000
  return static_cast<size_t>(frame->f_lasti);
#else
  return static_cast<size_t>(PyFrame_GetLasti(frame)) / 2;
#endif
}

// ---- The watch ----------------------------------------------------------------------------------

struct Table {
  Ref code;
  std::vector<uint16_t> numbers;  // empty: the code is not watched
  size_t locals = 0;
  size_t running = 0;  // frames
};
struct Watch {
  Ref describe, enter, handle;
  std::unordered_map<PyCodeObject*, Table> tables;
  PyFrameObject* imported = nullptr;  // of a module; meanwhile nothing is watched
};
PyTypeObject* watch_type = nullptr;

Table* table_of(Watch& watch, PyCodeObject* code) {
  auto [at, is_new] = watch.tables.try_emplace(code);
  Table& table = at->second;
  if (!is_new) return &table;
  table.code = Ref::borrow(reinterpret_cast<PyObject*>(code));
  // (number of local slots, table as bytes), or None.
  Ref made(PyObject_CallOneArg(watch.describe.get(), table.code.get()));
  if (!made) return nullptr;
  if (made.get() == Py_None) return &table;
  Py_ssize_t locals;
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(made.get(), "ny#", &locals, &bytes, &size)) return nullptr;
  table.locals = static_cast<size_t>(locals);
  table.numbers.resize(static_cast<size_t>(size) / sizeof(uint16_t));
  std::memcpy(table.numbers.data(), bytes, static_cast<size_t>(size));
  return &table;
}

int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject*) {
  auto& watch = held<Watch>(self);
  if (what == PyTrace_RETURN && watch.imported == frame) watch.imported = nullptr;
  // Python 3.13 marks code, rather than a frame, and leaves the mark there.
  if (what == PyTrace_RETURN && PY_VERSION_HEX >= 0x030D0000) {
    Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    auto at = watch.tables.find(reinterpret_cast<PyCodeObject*>(code.get()));
    if (at == watch.tables.end() || at->second.running == 0 || --at->second.running != 0) return 0;
    auto* object = reinterpret_cast<PyObject*>(frame);
    return PyObject_SetAttrString(object, "f_trace_opcodes", Py_False);
  }
  if ((what != PyTrace_CALL && what != PyTrace_OPCODE) || watch.imported != nullptr) return 0;
  Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  Table* table = table_of(watch, reinterpret_cast<PyCodeObject*>(code.get()));
  if (table == nullptr) return -1;
  if (table->numbers.empty()) return 0;
  auto* object = reinterpret_cast<PyObject*>(frame);
  if (what == PyTrace_CALL) {
    if (PyObject_SetAttrString(object, "f_trace_lines", Py_False) != 0 ||
        PyObject_SetAttrString(object, "f_trace_opcodes", Py_True) != 0 ||
        (PY_VERSION_HEX >= 0x030D0000 && PyObject_SetAttrString(object, "f_trace", self) != 0)) {
      return -1;
    }
    ++table->running;
    Ref done(PyObject_CallOneArg(watch.enter.get(), object));
    if (done.get() == Py_True) watch.imported = frame;
    return done ? 0 : -1;
  }
  size_t place = place_of(frame);
  if (2 * place + 1 >= table->numbers.size()) return 0;
  uint16_t count = table->numbers[2 * place], depth = table->numbers[2 * place + 1];
  if (count == kIgnored) return 0;
  if (count > depth) count = depth;
  Ref operands(PyTuple_New(count));
  if (!operands) return -1;
  PyObject** top = locals_of(frame) + table->locals + depth;
  for (uint16_t i = 0; i < count; ++i) {
    PyObject* one = in_slot(top - count + i);
    // The watch itself stands for an empty slot.
    PyTuple_SET_ITEM(operands.get(), i, Ref::borrow(one == nullptr ? self : one).release());
  }
  Ref number(PyLong_FromSize_t(place));
  Ref done(PyObject_CallFunctionObjArgs(watch.handle.get(), object, number.get(), operands.get(),
                                        nullptr));
  return done ? 0 : -1;
}

// (describe, enter, handle): a watch that is off.
PyObject* make(PyObject*, PyObject* args) {
  PyObject *describe, *enter, *handle;
  if (!PyArg_ParseTuple(args, "OOO:_watch", &describe, &enter, &handle)) return nullptr;
  return guarded([&] {
    Watch watch{Ref::borrow(describe), Ref::borrow(enter), Ref::borrow(handle), {}, nullptr};
    return hold(watch_type, std::move(watch));
  });
}
// Begins to watch. `first` is the first local variable of the calling function: if its frame has it
// elsewhere, this Python lays frames out in a way that is not known here.
PyObject* start(PyObject* self, PyObject* first) {
  constexpr int kNewestKnown = 0x030F0000;
  PyFrameObject* frame = PyEval_GetFrame();
  if (PY_VERSION_HEX >= kNewestKnown || frame == nullptr || in_slot(locals_of(frame)) != first) {
    return PyErr_Format(PyExc_RuntimeError, "the layout of frames of Python %d.%d is not known",
                        PY_MAJOR_VERSION, PY_MINOR_VERSION);
  }
  PyEval_SetTrace(on_event, self);
  Py_RETURN_NONE;
}
// What a local slot of a frame holds; None if it is empty.
PyObject* slot(PyObject*, PyObject* args) {
  PyFrameObject* frame;
  Py_ssize_t at;
  if (!PyArg_ParseTuple(args, "O!n:slot", &PyFrame_Type, &frame, &at)) return nullptr;
  PyObject* found = in_slot(locals_of(frame) + at);
  return Ref::borrow(found == nullptr ? Py_None : found).release();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  const auto& watch = held<Watch>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(watch.describe.get());
  Py_VISIT(watch.enter.get());
  Py_VISIT(watch.handle.get());
  return 0;
}
int clear(PyObject* self) {
  auto& watch = held<Watch>(self);
  for (Ref* one : {&watch.describe, &watch.enter, &watch.handle}) *one = Ref();
  return 0;
}
void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  destroy_holder<Watch>(self);
}

// A frame that outlives the watch may be traced by something else, which calls its `f_trace`.
PyObject* call_as_trace(PyObject*, PyObject*, PyObject*) { Py_RETURN_NONE; }

PyMethodDef methods[] = {{"start", start, METH_O, nullptr},
                         {"slot", slot, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("Sees the instructions of Python code.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(call_as_trace)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._Watch", sizeof(Holder<Watch>), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyMethodDef functions[] = {{"_watch", make, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_reads(PyObject* module) {
  watch_type = add_type(module, &spec);
  return watch_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
