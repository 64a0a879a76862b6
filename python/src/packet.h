// Packets: the callable objects of operators. `lamella.add`, `Tensor.add` and
// `lamella.ops.aten.add` are packets of one name; `lamella.ops.aten.add.Tensor` is a packet of one
// overload.
#pragma once
#include "python/src/call.h"

namespace lamella::python {

struct PyPacket {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::atomic<const ProgramTable*> table;
  std::atomic<uint64_t> generation;  // at which `table` was made, or an earlier one
  const lamella_operator* op;        // if the packet is of one overload, else NULL
  char* qualified;                   // "aten::add"
  PyObject* name;                    // as the caller sees it
  PyObject* module;                  // the value of __module__
  PyObject* doc;                     // NULL: the schemas are the text
  PyObject* dict;                    // attributes, or NULL
  bool is_method;
};
extern PyTypeObject FunctionType_;  // a plain function
extern PyTypeObject MethodType_;    // binds to a tensor
extern PyTypeObject PacketType;     // lamella.ops.<ns>.<op>
extern PyTypeObject OverloadType;   // lamella.ops.<ns>.<op>.<overload>

// A new reference.
PyPacket* make_packet(PyTypeObject* type, const char* qualified, const char* name,
                      const char* module);

// The attributes of overloads (overload.cpp).
extern PyGetSetDef overload_getset[];
extern PyMethodDef overload_methods[];
PyObject* overload_str(PyObject* self);
int add_overloads(PyObject* module);

const ProgramTable* refresh_table(PyPacket* packet);
// The programs that the packet's calls choose from; NULL with a Python error set if its operator is
// gone.
inline const ProgramTable* table_of(PyPacket* packet) {
  const ProgramTable* table = packet->table.load(std::memory_order_acquire);
  if (table != nullptr &&
      packet->generation.load(std::memory_order_relaxed) == operators_generation()) [[likely]]
    return table;
  return refresh_table(packet);
}
PyObject* call_packet(PyPacket* packet, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace lamella::python
