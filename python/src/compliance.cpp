// Switches of lamella.testing.
#include "lamella/abi/autograd.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

PyObject* set_composite_check(PyObject*, PyObject* on) {
  int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  constexpr uint32_t bit = LAMELLA_MODE_COMPOSITE_CHECK;
  return PyBool_FromLong((lamella_set_modes(bit, wanted != 0 ? bit : 0) & bit) != 0);
}

PyMethodDef functions[] = {
    {"_set_composite_check", set_composite_check, METH_O,
     "Turns the check of composite kernels on or off for this thread; returns the former."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_compliance(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
