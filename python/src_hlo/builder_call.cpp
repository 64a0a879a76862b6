// Calling a row of the builder's table with Python's arguments.
#include <deque>
#include <mutex>
#include <set>

#include "python/src_hlo/builder.h"
// Python 3.9 and 3.10 declare frames apart from Python.h.
#include <frameobject.h>

namespace lamella::python {
namespace {

constexpr const char* kCapsule = "lamella._hlo.function";

// A row with its parsed parameters.
struct Function {
  const Row* row;
  std::vector<std::string> texts;
  std::vector<const char*> names;
  std::vector<bool> optional;
  std::vector<const char*> annotations;
  int builder = -1;  // the index of the parameter that is the builder
  std::string doc;
  PyMethodDef definition;
};

Function take_apart(const Row& row) {
  Function function;
  function.row = &row;
  function.annotations = row.annotations();
  std::string_view rest = row.parameters;
  while (!rest.empty()) {
    size_t comma = rest.find(", ");
    std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    function.optional.push_back(name.back() == '?');
    if (name.back() == '?') name.remove_suffix(1);
    if (name == "builder") function.builder = static_cast<int>(function.texts.size());
    function.texts.emplace_back(name);
  }
  LAMELLA_INTERNAL_ASSERT(function.texts.size() == function.annotations.size(), row.name);
  return function;
}

// The first op among the arguments, and in lists among them, determines the builder; the first one
// that is not of type pred determines the type of numbers.
void look_at(PyObject* object, Arguments* all, bool inside) {
  if (object == nullptr) return;
  if (Py_TYPE(object) == op_type) {
    const OpHandle& handle = held<OpHandle>(object);
    if (all->builder == nullptr) all->builder = handle.builder;
    if (all->number_type != hlo::ElementType::Invalid &&
        all->number_type != hlo::ElementType::PRED) {
      return;
    }
    auto shape = handle.builder->GetShape(handle.op);
    if (shape.ok() && shape->is_array()) all->number_type = shape->element_type();
    return;
  }
  if (!inside && (PyList_Check(object) || PyTuple_Check(object))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      look_at(PySequence_Fast_GET_ITEM(object, i), all, true);
    }
  }
}

[[noreturn]] void type_error(const std::string& text) { throw lamella::TypeError(text); }

void fill(const Function& f, PyObject* args, PyObject* kwargs, std::vector<PyObject*>* objects) {
  size_t count = f.names.size();
  objects->assign(count, nullptr);
  auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  // The builder may be left out of positional arguments as well.
  size_t at = 0;
  for (size_t i = 0; i < given; ++i, ++at) {
    PyObject* object = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
    if (static_cast<int>(at) == f.builder && Py_TYPE(object) != builder_type) ++at;
    if (at >= count) {
      type_error(str(f.row->name, ": expected at most ", count, " arguments, got ", given));
    }
    (*objects)[at] = object;
  }
  PyObject *key, *value;
  Py_ssize_t place = 0;
  while (kwargs != nullptr && PyDict_Next(kwargs, &place, &key, &value) != 0) {
    std::string_view name = text_of(key, f.row->name);
    size_t i = 0;
    while (i < count && name != f.names[i]) ++i;
    if (i == count) type_error(str(f.row->name, ": expected no argument '", name, "'"));
    if ((*objects)[i] != nullptr) type_error(str(f.row->name, ": expected '", name, "' once"));
    (*objects)[i] = value;
  }
  for (size_t i = 0; i < count; ++i) {
    if ((*objects)[i] == nullptr && !f.optional[i] && static_cast<int>(i) != f.builder) {
      type_error(str(f.row->name, ": expected '", f.names[i], "'"));
    }
  }
}

PyObject* call_function(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* function = static_cast<const Function*>(PyCapsule_GetPointer(self, kCapsule));
  if (function == nullptr) return nullptr;
  return guarded([&] {
    const Function& f = *function;
    std::vector<PyObject*> objects;
    fill(f, args, kwargs, &objects);
    Arguments all;
    all.function = f.row->name;
    all.where = python_place();
    if (f.builder >= 0) {
      PyObject* builder = objects[static_cast<size_t>(f.builder)];
      if (builder != nullptr && builder != Py_None) {
        if (Py_TYPE(builder) != builder_type) {
          type_error(str(f.row->name, ": expected 'builder' to be a Builder, got ",
                         Py_TYPE(builder)->tp_name));
        }
        all.builder = held<BuilderHandle>(builder).builder;
      }
    }
    for (PyObject* object : objects) look_at(object, &all, false);
    if (all.builder == nullptr) {
      type_error(str(f.row->name, ": expected an Op among the arguments",
                     f.builder >= 0 ? ", or a builder" : ""));
    }
    hlo::Op op = f.row->call(all, objects.data(), f.names.data());
    return hold(op_type, OpHandle{all.builder, op});
  });
}

// (name, ((parameter, annotation, optional), ...), doc) of each function, for the stub.
PyObject* signatures(PyObject*, PyObject*);

// Functions are made once and never freed.
std::deque<Function>& functions() {
  static auto& all = *new std::deque<Function>;
  return all;
}

PyObject* signatures(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(required(PyList_New(0)));
    for (const Function& f : functions()) {
      Ref parameters(required(PyList_New(0)));
      for (size_t i = 0; i < f.names.size(); ++i) {
        Ref one(required(Py_BuildValue("(ssO)", f.names[i], f.annotations[i],
                                       f.optional[i] ? Py_True : Py_False)));
        if (PyList_Append(parameters.get(), one.get()) != 0) throw PythonError();
      }
      Ref entry(required(Py_BuildValue("(sOs)", f.row->name, parameters.get(), f.row->doc)));
      if (PyList_Append(list.get(), entry.get()) != 0) throw PythonError();
    }
    return list.release();
  });
}

PyMethodDef module_functions[] = {{"_builder_signatures", signatures, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace

hlo::Where python_place() {
  // The texts of file names are never freed, as locations outlive the code that they name.
  static auto& files = *new std::set<std::string>;
  static auto& mutex = *new std::mutex;
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* now = reinterpret_cast<PyFrameObject*>(frame.get());
    Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(now)));
    Ref name(required(PyObject_GetAttrString(code.get(), "co_filename")));
    std::string file(text_of(name.get(), "co_filename"));
    if (file.find("/lamella/hlo/") == std::string::npos) {
      std::lock_guard<std::mutex> lock(mutex);
      return {files.insert(std::move(file)).first->c_str(),
              static_cast<uint32_t>(PyFrame_GetLineNumber(now))};
    }
    frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(now)));
  }
  return {"<unknown>", 0};
}

int add_builder_functions(PyObject* module) {
  Ref module_name(PyUnicode_FromString("lamella.hlo"));
  for (const Row& row : builder_rows()) {
    Function& f = functions().emplace_back(take_apart(row));
    for (const std::string& text : f.texts) f.names.push_back(text.c_str());
    f.doc = str(row.name, "(");
    for (size_t i = 0; i < f.names.size(); ++i) {
      f.doc += str(i == 0 ? "" : ", ", f.names[i], f.optional[i] ? "=..." : "");
    }
    f.doc += str(")\n\n", row.doc);
    f.definition = {row.name, method(call_function), METH_VARARGS | METH_KEYWORDS, f.doc.c_str()};
    Ref capsule(PyCapsule_New(&f, kCapsule, nullptr));
    Ref made(capsule ? PyCFunction_NewEx(&f.definition, capsule.get(), module_name.get())
                     : nullptr);
    // Under a name that does not hide Python's own functions.
    std::string place = str("build_", row.name);
    if (!made || PyModule_AddObject(module, place.c_str(), made.release()) != 0) return -1;
  }
  return PyModule_AddFunctions(module, module_functions);
}

}  // namespace lamella::python
