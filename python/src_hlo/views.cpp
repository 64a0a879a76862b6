// Modules as JSON, DOT and HTML, and the differences between two modules.
#include "python/src_hlo/hlo.h"

#include "lamella/graph/view/diff.h"
#include "lamella/graph/view/dot.h"
#include "lamella/graph/view/html.h"
#include "lamella/graph/view/json.h"

namespace lamella::python {
namespace {

// The text that `make` returns for the module, made without the GIL.
template <class F>
PyObject* text_of_module(PyObject* self, F&& make) {
  return guarded([&] {
    ModuleHandle module = module_from(self, "Module");
    std::string text;
    {
      WithoutGil free;
      text = make(*module);
    }
    return text_object(text);
  });
}
PyObject* from_json(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", "verify", nullptr};
  PyObject* object = nullptr;
  int verify = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:from_json", const_cast<char**>(names),
                                   &object, &verify)) {
    return nullptr;
  }
  return guarded([&] {
    std::string_view text = text_of(object, "from_json");
    ModuleHandle module;
    {
      WithoutGil free;
      module = hlo::from_json(text, verify != 0);
    }
    return module_object(std::move(module));
  });
}

PyMethodDef functions[] = {
    {"from_json", method(from_json), METH_VARARGS | METH_KEYWORDS,
     "from_json(text, verify=True)\n\nThe module that Module.to_json wrote."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* module_to_json(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"indent", nullptr};
  int indent = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:to_json", const_cast<char**>(names),
                                   &indent)) {
    return nullptr;
  }
  return text_of_module(self, [&](const hlo::Module& m) { return hlo::to_json(m, indent); });
}
PyObject* module_to_dot(PyObject* self, PyObject*) {
  return text_of_module(self, [](const hlo::Module& m) { return hlo::to_dot(m); });
}
PyObject* module_to_html(PyObject* self, PyObject*) {
  return text_of_module(self, [](const hlo::Module& m) { return hlo::to_html(m); });
}
PyObject* module_diff(PyObject* self, PyObject* other) {
  return guarded([&] {
    ModuleHandle before = module_from(self, "diff"), after = module_from(other, "diff");
    hlo::Difference difference;
    {
      WithoutGil free;
      difference = hlo::compare(*before, *after);
    }
    return text_object(difference.same() ? std::string() : difference.text + "\n");
  });
}

int add_views(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
