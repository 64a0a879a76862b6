// lamella.hlo.Module, Computation and Instruction: views of a module that keep it alive.
#include <functional>

#include "lamella/graph/stablehlo/stablehlo.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {

PyTypeObject* module_type = nullptr;

namespace {

PyTypeObject* computation_type = nullptr;
PyTypeObject* instruction_type = nullptr;

const ModuleHandle& module_of(PyObject* self) { return held<ModuleHandle>(self); }
const ComputationHandle& computation_of(PyObject* self) { return held<ComputationHandle>(self); }
const InstructionHandle& instruction_of(PyObject* self) { return held<InstructionHandle>(self); }

PyObject* computation_object(const ModuleHandle& module, const hlo::Computation* computation) {
  return hold(computation_type, ComputationHandle{module, computation});
}
PyObject* instruction_object(const ModuleHandle& module, const hlo::Instruction* instruction) {
  return hold(instruction_type, InstructionHandle{module, instruction});
}
// A tuple of the results of `make` for the items; throws.
template <class L, class F>
PyObject* tuple_of(const L& items, F&& make) {
  Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(items.size()))));
  Py_ssize_t at = 0;
  for (const auto& item : items) PyTuple_SET_ITEM(tuple.get(), at++, required(make(item)));
  return tuple.release();
}
void put(PyObject* dictionary, const char* key, PyObject* owned) {
  Ref value(required(owned));
  if (PyDict_SetItemString(dictionary, key, value.get()) != 0) throw PythonError();
}
void put(PyObject* dictionary, std::string_view key, PyObject* owned) {
  put(dictionary, std::string(key).c_str(), owned);
}

template <class T>
PyObject* print(const T& what, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"percent", "operand_shapes", "metadata", nullptr};
  int percent = 0, operand_shapes = 0, metadata = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ppp:to_string", const_cast<char**>(names),
                                   &percent, &operand_shapes, &metadata)) {
    return nullptr;
  }
  return guarded([&] {
    return text_object(hlo::to_string(what, {percent != 0, operand_shapes != 0, metadata != 0}));
  });
}
template <class T>
PyObject* print_plainly(const T& what) {
  return guarded([&] { return text_object(hlo::to_string(what)); });
}
PyObject* same(bool equal, int operation) {
  return PyBool_FromLong(equal == (operation == Py_EQ) ? 1 : 0);
}

// ---- Modules -----------------------------------------------------------------------------------

PyObject* parse(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", "verify", "entry", nullptr};
  PyObject* text;
  int verify = 1;
  const char* entry = "main";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ps:parse", const_cast<char**>(names), &text,
                                   &verify, &entry)) {
    return nullptr;
  }
  return guarded([&] {
    std::string_view data =
        PyBytes_Check(text)
            ? std::string_view(PyBytes_AS_STRING(text), static_cast<size_t>(PyBytes_GET_SIZE(text)))
            : text_of(text, "parse");
    const bool is_stablehlo = hlo::stablehlo::is_bytecode(data) || hlo::stablehlo::is_text(data);
    return module_object(is_stablehlo ? hlo::stablehlo::read(data, verify != 0, entry)
                                      : hlo::parse_module(data, verify != 0));
  });
}

PyObject* get_module_name(PyObject* self, void*) { return text_object(module_of(self)->name); }
PyObject* get_entry(PyObject* self, void*) {
  return guarded([&] { return computation_object(module_of(self), module_of(self)->entry); });
}
PyObject* get_computations(PyObject* self, void*) {
  return guarded([&] {
    const ModuleHandle& module = module_of(self);
    return tuple_of(module->computations,
                    [&](const auto* one) { return computation_object(module, one); });
  });
}
PyObject* get_count(PyObject* self, void*) {
  return PyLong_FromLongLong(module_of(self)->instruction_count());
}
PyObject* get_scheduled(PyObject* self, void*) {
  return PyBool_FromLong(module_of(self)->is_scheduled ? 1 : 0);
}
PyObject* get_aliases(PyObject* self, void*) {
  return guarded([&] {
    return tuple_of(module_of(self)->input_output_aliases, [](const hlo::InputOutputAlias& alias) {
      Ref output(numbers_object(alias.output)), index(numbers_object(alias.parameter_index));
      return Py_BuildValue("(OLOs)", output.get(), static_cast<long long>(alias.parameter),
                           index.get(), alias.must ? "must-alias" : "may-alias");
    });
  });
}
PyObject* get_module_attributes(PyObject* self, void*) {
  return guarded([&] {
    Ref dictionary(required(PyDict_New()));
    for (const auto& [key, value] : module_of(self)->attributes) {
      put(dictionary.get(), key, text_object(value));
    }
    return dictionary.release();
  });
}
PyObject* verify(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    hlo::verify(*module_of(self));
    Py_RETURN_NONE;
  });
}
PyObject* find_computation(PyObject* self, PyObject* name) {
  return guarded([&] {
    const ModuleHandle& module = module_of(self);
    std::string_view wanted = text_of(name, "computation");
    const hlo::Computation* found = module->find_computation(wanted);
    if (found == nullptr) {
      throw lamella::IndexError(
          str("computation: expected one of '", module->name, "', got '", wanted, "'"));
    }
    return computation_object(module, found);
  });
}
PyObject* module_to_stablehlo(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::string data = hlo::stablehlo::to_bytecode(*module_of(self));
    return PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()));
  });
}
PyObject* module_to_string(PyObject* self, PyObject* args, PyObject* kwargs) {
  return print(*module_of(self), args, kwargs);
}
PyObject* module_as_text(PyObject* self) { return print_plainly(*module_of(self)); }
PyObject* module_represent(PyObject* self) {
  return guarded([&] {
    const hlo::Module& module = *module_of(self);
    return text_object(str("<lamella.hlo.Module '", module.name, "' ", module.entry->signature(),
                           ", ", module.instruction_count(), " instructions>"));
  });
}
PyObject* module_compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != module_type) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return guarded([&] {
    const hlo::Module &a = *module_of(self), &b = *module_of(other);
    return same(&a == &b || hlo::to_string(a) == hlo::to_string(b), operation);
  });
}
Py_hash_t module_hash(PyObject* self) {
  try {
    auto value = static_cast<Py_hash_t>(std::hash<std::string>()(hlo::to_string(*module_of(self))));
    return value == -1 ? -2 : value;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  }
}

PyGetSetDef module_getset[] = {
    {"name", get_module_name, nullptr, "The module's name.", nullptr},
    {"entry", get_entry, nullptr, "The computation that runs.", nullptr},
    {"computations", get_computations, nullptr, "All of them, callees first.", nullptr},
    {"instruction_count", get_count, nullptr, "Instructions of all computations.", nullptr},
    {"is_scheduled", get_scheduled, nullptr, "Whether instructions run in the order of the text.",
     nullptr},
    {"input_output_aliases", get_aliases, nullptr,
     "(output index, parameter, index in it, 'may-alias' or 'must-alias') of each.", nullptr},
    {"attributes", get_module_attributes, nullptr, "Other attributes of the header, as written.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef module_methods[] = {
    {"to_stablehlo", module_to_stablehlo, METH_NOARGS,
     "to_stablehlo()\n\nA portable artifact of StableHLO (VHLO 1.10), as bytes, which JAX reads "
     "and\n"
     "hlo.parse() as well. Parameters and results that are tuples become their arrays."},
    {"to_string", method(module_to_string), METH_VARARGS | METH_KEYWORDS,
     "to_string(*, percent=False, operand_shapes=False, metadata=True)\n\nXLA's text."},
    {"verify", verify, METH_NOARGS, "Raises an error that names the instruction that is wrong."},
    {"computation", find_computation, METH_O, "The computation of that name."},
    {"to_json", method(module_to_json), METH_VARARGS | METH_KEYWORDS,
     "to_json(indent=1)\n\nThe module as JSON; from_json reads it. -1: in one line."},
    {"to_dot", module_to_dot, METH_NOARGS, "The graph as text for Graphviz."},
    {"to_html", module_to_html, METH_NOARGS, "A page that shows the graph and needs nothing else."},
    {"diff", module_diff, METH_O,
     "diff(other)\n\nInstructions removed (-), added (+) and changed (~) from this module to "
     "the other;\n"
     "'' if they are equal except for names."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot module_slots[] = {
    {Py_tp_doc, const_cast<char*>("A program of HLO.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<ModuleHandle>)},
    {Py_tp_str, reinterpret_cast<void*>(module_as_text)},
    {Py_tp_repr, reinterpret_cast<void*>(module_represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(module_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(module_hash)},
    {Py_tp_getset, module_getset},
    {Py_tp_methods, module_methods},
    {0, nullptr}};
PyType_Spec module_spec = {"lamella._hlo.Module", sizeof(Holder<ModuleHandle>), 0,
                           Py_TPFLAGS_DEFAULT, module_slots};

// ---- Computations ------------------------------------------------------------------------------

PyObject* get_computation_name(PyObject* self, void*) {
  return text_object(computation_of(self).computation->name);
}
PyObject* get_parent_module(PyObject* self, void*) {
  return guarded([&] { return module_object(computation_of(self).module); });
}
PyObject* get_instructions(PyObject* self, void*) {
  return guarded([&] {
    const ComputationHandle& one = computation_of(self);
    return tuple_of(one.computation->instructions,
                    [&](const auto* i) { return instruction_object(one.module, i); });
  });
}
PyObject* get_parameters(PyObject* self, void*) {
  return guarded([&] {
    const ComputationHandle& one = computation_of(self);
    return tuple_of(one.computation->parameters,
                    [&](const auto* i) { return instruction_object(one.module, i); });
  });
}
PyObject* get_root(PyObject* self, void*) {
  return guarded([&] {
    const ComputationHandle& one = computation_of(self);
    return instruction_object(one.module, one.computation->root);
  });
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] { return text_object(computation_of(self).computation->signature()); });
}
PyObject* get_is_entry(PyObject* self, void*) {
  const ComputationHandle& one = computation_of(self);
  return PyBool_FromLong(one.module->entry == one.computation ? 1 : 0);
}
PyObject* computation_to_string(PyObject* self, PyObject* args, PyObject* kwargs) {
  return print(*computation_of(self).computation, args, kwargs);
}
PyObject* computation_as_text(PyObject* self) {
  return print_plainly(*computation_of(self).computation);
}
PyObject* computation_represent(PyObject* self) {
  return guarded([&] {
    const hlo::Computation& one = *computation_of(self).computation;
    return text_object(str("<lamella.hlo.Computation '", one.name, "' ", one.signature(), ">"));
  });
}
PyObject* computation_compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != computation_type) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return same(computation_of(self).computation == computation_of(other).computation, operation);
}
Py_hash_t computation_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(computation_of(self).computation) >> 4);
}

PyGetSetDef computation_getset[] = {
    {"name", get_computation_name, nullptr, nullptr, nullptr},
    {"module", get_parent_module, nullptr, "The module it is part of.", nullptr},
    {"instructions", get_instructions, nullptr, "Operands come before their users.", nullptr},
    {"parameters", get_parameters, nullptr, "By number.", nullptr},
    {"root", get_root, nullptr, "The instruction whose value is the result.", nullptr},
    {"signature", get_signature, nullptr, "'(f32[2], s32[]) -> f32[2]'.", nullptr},
    {"is_entry", get_is_entry, nullptr, "Whether it is the one that runs.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef computation_methods[] = {
    {"to_string", method(computation_to_string), METH_VARARGS | METH_KEYWORDS,
     "to_string(*, percent=False, operand_shapes=False, metadata=True)\n\nXLA's text."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot computation_slots[] = {
    {Py_tp_doc, const_cast<char*>("One function of a module.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<ComputationHandle>)},
    {Py_tp_str, reinterpret_cast<void*>(computation_as_text)},
    {Py_tp_repr, reinterpret_cast<void*>(computation_represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(computation_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(computation_hash)},
    {Py_tp_getset, computation_getset},
    {Py_tp_methods, computation_methods},
    {0, nullptr}};
PyType_Spec computation_spec = {"lamella._hlo.Computation", sizeof(Holder<ComputationHandle>), 0,
                                Py_TPFLAGS_DEFAULT, computation_slots};

// ---- Instructions ------------------------------------------------------------------------------

// An attribute as a Python object: numbers, text, tuples, dictionaries, shapes, computations.
PyObject* attribute_object(const ModuleHandle& module, const hlo::Attribute& a) {
  using hlo::AttributeKind;
  switch (hlo::attribute_kind(a.key)) {
    case AttributeKind::Integer:
      return PyLong_FromLongLong(a.integer);
    case AttributeKind::Boolean:
      return PyBool_FromLong(a.integer != 0 ? 1 : 0);
    case AttributeKind::Real:
      return PyFloat_FromDouble(a.real);
    case AttributeKind::Integers:
      return numbers_object(a.integers());
    case AttributeKind::Word:
    case AttributeKind::String:
    case AttributeKind::Text:
      return text_object(a.text());
    case AttributeKind::DimLabels:
      return text_object(hlo::to_string(a));
    case AttributeKind::Window:
      return tuple_of(a.window(), [](const hlo::WindowDimension& d) {
        return Py_BuildValue("{sLsLs(LL)sLsLsO}", "size", d.size, "stride", d.stride, "padding",
                             d.padding_low, d.padding_high, "base_dilation", d.base_dilation,
                             "window_dilation", d.window_dilation, "reversal",
                             d.reversal ? Py_True : Py_False);
      });
    case AttributeKind::Padding:
      return tuple_of(a.padding(), [](const hlo::PaddingDimension& d) {
        return Py_BuildValue("(LLL)", d.low, d.high, d.interior);
      });
    case AttributeKind::Slices:
      return tuple_of(a.slices(), [](const hlo::SliceDimension& d) {
        return Py_BuildValue("(LLL)", d.start, d.limit, d.stride);
      });
    case AttributeKind::Computation:
      return computation_object(module, a.computation);
    case AttributeKind::Computations:
      return tuple_of(a.computations(),
                      [&](const auto* one) { return computation_object(module, one); });
    case AttributeKind::Instructions:
      return tuple_of(a.instructions(),
                      [&](const auto* one) { return instruction_object(module, one); });
    case AttributeKind::Shapes:
      return tuple_of(a.shapes(), [](const hlo::Shape* one) { return shape_object(*one); });
    case AttributeKind::ShapeOf:
      return shape_object(*a.shape);
    case AttributeKind::Aliasing:
      return tuple_of(a.aliases(), [](const hlo::OperandAlias& one) {
        Ref output(numbers_object(one.output)), index(numbers_object(one.operand_index));
        return Py_BuildValue("(OLO)", output.get(), one.operand, index.get());
      });
  }
  Py_RETURN_NONE;
}

// {op_name="jit(f)/add" source_file="f.py" source_line=3} as a dictionary of text and numbers.
PyObject* metadata_object(std::string_view text) {
  Ref dictionary(required(PyDict_New()));
  size_t at = 0;
  auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '{' || text[at] == '}')) ++at;
  };
  for (skip(); at < text.size(); skip()) {
    size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) break;
    std::string key(text.substr(at, equals - at));
    at = equals + 1;
    std::string value;
    bool quoted = at < text.size() && text[at] == '"';
    if (quoted) ++at;
    for (; at < text.size() && (quoted ? text[at] != '"' : text[at] != ' ' && text[at] != '}');
         ++at) {
      if (quoted && text[at] == '\\' && at + 1 < text.size()) ++at;
      value += text[at];
    }
    if (quoted) ++at;
    bool number = !quoted && !value.empty() &&
                  value.find_first_not_of("0123456789", value[0] == '-') == std::string::npos;
    put(dictionary.get(), key.c_str(),
        number ? PyLong_FromString(value.c_str(), nullptr, 10) : text_object(value));
  }
  return dictionary.release();
}

PyObject* get_instruction_name(PyObject* self, void*) {
  return text_object(instruction_of(self).instruction->name);
}
PyObject* get_opcode(PyObject* self, void*) {
  return text_object(hlo::opcode_name(instruction_of(self).instruction->opcode));
}
PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return shape_object(*instruction_of(self).instruction->shape); });
}
PyObject* get_operands(PyObject* self, void*) {
  return guarded([&] {
    const InstructionHandle& one = instruction_of(self);
    return tuple_of(one.instruction->operands,
                    [&](const auto* i) { return instruction_object(one.module, i); });
  });
}
PyObject* get_attributes(PyObject* self, void*) {
  return guarded([&] {
    const InstructionHandle& one = instruction_of(self);
    Ref dictionary(required(PyDict_New()));
    for (const hlo::Attribute& attribute : one.instruction->attributes) {
      if (attribute.key == hlo::AttributeKey::Metadata) continue;
      put(dictionary.get(), hlo::attribute_name(attribute.key),
          attribute_object(one.module, attribute));
    }
    return dictionary.release();
  });
}
PyObject* get_metadata(PyObject* self, void*) {
  return guarded([&] {
    return metadata_object(instruction_of(self).instruction->text(hlo::AttributeKey::Metadata));
  });
}
PyObject* get_parent(PyObject* self, void*) {
  return guarded([&] {
    const InstructionHandle& one = instruction_of(self);
    return computation_object(one.module, one.instruction->parent);
  });
}
PyObject* get_parameter_number(PyObject* self, void*) {
  const hlo::Instruction& i = *instruction_of(self).instruction;
  if (i.opcode != hlo::Opcode::Parameter) Py_RETURN_NONE;
  return PyLong_FromLongLong(i.parameter_number);
}
PyObject* get_literal(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const hlo::Instruction& i = *instruction_of(self).instruction;
    if (i.opcode != hlo::Opcode::Constant) Py_RETURN_NONE;
    return literal_object(i.shape, *i.literal);
  });
}
PyObject* get_is_root(PyObject* self, void*) {
  const hlo::Instruction& i = *instruction_of(self).instruction;
  return PyBool_FromLong(i.parent->root == &i ? 1 : 0);
}
PyObject* instruction_to_string(PyObject* self, PyObject* args, PyObject* kwargs) {
  return print(*instruction_of(self).instruction, args, kwargs);
}
PyObject* instruction_as_text(PyObject* self) {
  return print_plainly(*instruction_of(self).instruction);
}
PyObject* instruction_represent(PyObject* self) {
  return guarded([&] {
    return text_object(str("<lamella.hlo.Instruction ",
                           hlo::to_string(*instruction_of(self).instruction, {.metadata = false}),
                           ">"));
  });
}
PyObject* instruction_compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != instruction_type) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return same(instruction_of(self).instruction == instruction_of(other).instruction, operation);
}
Py_hash_t instruction_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(instruction_of(self).instruction) >> 4);
}

PyGetSetDef instruction_getset[] = {
    {"name", get_instruction_name, nullptr, nullptr, nullptr},
    {"opcode", get_opcode, nullptr, "'dynamic-slice' and the like.", nullptr},
    {"shape", get_shape, nullptr, "Of its value.", nullptr},
    {"operands", get_operands, nullptr, "The instructions that are its operands.", nullptr},
    {"attributes", get_attributes, nullptr, "By name; values as plain Python objects.", nullptr},
    {"metadata", get_metadata, nullptr, "Its origin: op_name, source_file, ...", nullptr},
    {"computation", get_parent, nullptr, "The computation it is part of.", nullptr},
    {"parameter_number", get_parameter_number, nullptr, "Of a parameter; else None.", nullptr},
    {"literal", get_literal, nullptr, "Of a constant, a Tensor or a tuple of those; else None.",
     nullptr},
    {"is_root", get_is_root, nullptr, "Whether its value is that of the computation.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef instruction_methods[] = {
    {"to_string", method(instruction_to_string), METH_VARARGS | METH_KEYWORDS,
     "to_string(*, percent=False, operand_shapes=False, metadata=True)\n\nXLA's text."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot instruction_slots[] = {
    {Py_tp_doc, const_cast<char*>("One operation of a computation.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<InstructionHandle>)},
    {Py_tp_str, reinterpret_cast<void*>(instruction_as_text)},
    {Py_tp_repr, reinterpret_cast<void*>(instruction_represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(instruction_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(instruction_hash)},
    {Py_tp_getset, instruction_getset},
    {Py_tp_methods, instruction_methods},
    {0, nullptr}};
PyType_Spec instruction_spec = {"lamella._hlo.Instruction", sizeof(Holder<InstructionHandle>), 0,
                                Py_TPFLAGS_DEFAULT, instruction_slots};

PyMethodDef functions[] = {
    {"parse", method(parse), METH_VARARGS | METH_KEYWORDS,
     "parse(text, verify=True, entry='main')\n\nThe module of XLA's text, or of "
     "StableHLO's text or bytecode (a portable artifact), whose function `entry` is the program."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* module_object(ModuleHandle module) { return hold(module_type, std::move(module)); }

const ModuleHandle& module_from(PyObject* object, const char* what) {
  if (!PyObject_TypeCheck(object, module_type)) {
    PyErr_Format(PyExc_TypeError, "%s: expected a Module, got %s", what, Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return module_of(object);
}

int add_modules(PyObject* module) {
  module_type = add_type(module, &module_spec);
  computation_type = add_type(module, &computation_spec);
  instruction_type = add_type(module, &instruction_spec);
  if (module_type == nullptr || computation_type == nullptr || instruction_type == nullptr) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
