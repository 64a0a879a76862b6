// Operators as functions of Python on arrays of any kind, without the kind's own dispatcher:
// arguments are read by the schema, results are arrays of the kind of the first one.
#include "lamella/bridge/call.h"

namespace lamella::bridge {
namespace {

// The value of each argument, in their order; false: `problem` says what is wrong.
bool bind(const Door& door, const Overload& o, PyObject* const* args, size_t count, PyObject* names,
          Scratch<PyObject*>& to, std::string* problem) {
  if (count > o.positional) {
    *problem = door.name + ": expected at most " + std::to_string(o.positional) +
               " positional arguments, got " + std::to_string(count);
    return false;
  }
  std::copy_n(args, count, to.begin());
  const PySize named = names != nullptr ? python.PyTuple_Size(names) : 0;
  for (PySize k = 0; k < named; ++k) {
    PyObject* name = python.PyTuple_GetItem(names, k);
    size_t at = 0;
    while (at < o.names.size() && o.names[at] != name) ++at;
    if (at == o.names.size()) {  // not the interned object
      at = 0;
      while (at < o.names.size() && text_of(name) != o.arguments[at].name) ++at;
    }
    if (at == o.names.size() || to[at] != nullptr) {
      *problem = door.name + ": got " + (at == o.names.size() ? "an unknown argument '" : "'") +
                 std::string(text_of(name)) + (at == o.names.size() ? "'" : "' twice");
      return false;
    }
    to[at] = args[count + static_cast<size_t>(k)];
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == nullptr) to[i] = o.defaults[i];
    if (to[i] != nullptr) continue;
    *problem = door.name + ": expected '" + o.arguments[i].name + "', of type " +
               o.arguments[i].type + "; it is missing";
    return false;
  }
  return true;
}

PyObject* call_door(PyObject* self, PyObject* const* args, PySize count, PyObject* names) {
  const HasGil gil;
  return python_guarded([&] {
    const Door& door = *static_cast<Door*>(python.PyCapsule_GetPointer(self, nullptr));
    std::optional<std::string> first_problem;
    for (const Overload& o : door.overloads) {
      Scratch<PyObject*> objects(o.arguments.size());
      std::string problem;
      if (bind(door, o, args, static_cast<size_t>(count), names, objects, &problem)) {
        Call call(door, o);
        bool is_read = false;
        try {
          call.read(objects.data());
          is_read = true;
        } catch (const Failure& failure) {
          if (failure.kind != LAMELLA_TYPE_ERROR || &o == &door.overloads.back()) throw;
          problem = failure.what();
        }
        if (is_read) return call.run(objects.data());
      }
      if (!first_problem) first_problem = std::move(problem);
    }
    throw Failure(*first_problem, LAMELLA_TYPE_ERROR);
  });
}

void fill(Overload& o, PyObject* defaults, PyObject* required) {
  o.arguments = arguments_of(o.op, 0);
  o.returns = arguments_of(o.op, 1);
  for (uint32_t i = 0; i < o.op->argument_count; ++i) {
    lamella_argument_info info;
    check(lamella_operator_argument(o.op, 0, i, &info));
    if (info.kwarg_only == 0) o.positional = i + 1;
    o.names.push_back(python.PyUnicode_InternFromString(info.name));
    PyObject* value = python.PyTuple_GetItem(defaults, i);
    o.defaults.push_back(value == required ? nullptr : Ref::borrow(value).take());
  }
  for (const Argument& result : o.returns) {
    o.is_view |= !result.aliases.empty() && !result.write;
    int from = -1;
    for (size_t i = 0; result.write && i < o.arguments.size(); ++i) {
      if (o.arguments[i].aliases == result.aliases) from = static_cast<int>(i);
    }
    o.written.push_back(from);
  }
}

}  // namespace
}  // namespace lamella::bridge

using namespace lamella::bridge;

// The function of an operator's overloads, which lives as long as the process. overloads: a list of
// (name, overload, defaults), a default being Ellipsis where the argument is required.
LAMELLA_BRIDGE_API PyObject* lamella_bridge_python_function(PyObject* name, PyObject* overloads,
                                                            PyObject* required) {
  return python_guarded([&] {
    auto* door = new Door;
    door->name = text_of(name);
    for (PySize k = 0; k < python.PyList_Size(overloads); ++k) {
      PyObject* row = python.PyList_GetItem(overloads, k);
      Overload& o = door->overloads.emplace_back();
      check(lamella_find_operator(text_of(python.PyTuple_GetItem(row, 0)).data(),
                                  text_of(python.PyTuple_GetItem(row, 1)).data(), &o.op));
      fill(o, python.PyTuple_GetItem(row, 2), required);
    }
    door->definition = {door->name.c_str(), &call_door, kFastKeywords, nullptr};
    const Ref state = Ref::need(python.PyCapsule_New(door, nullptr, nullptr));
    return Ref::need(python.PyCFunction_NewEx(&door->definition, state.get(), nullptr));
  });
}
