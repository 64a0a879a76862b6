// Data that the Python side keeps for each operator whose calls reach Python.
#pragma once
#include "lamella/dispatch/signature.h"
#include "lamella/schema/operator_facts.h"
#include "python/src/packet.h"

namespace lamella::python {

// One for each operator; never freed.
struct OpFacts {
  const lamella_operator* op;
  PyObject* overload;                          // lamella.ops.<ns>.<name>.<overload>
  PyObject* rules = nullptr;                   // a dict: what to call instead of a class's handler
  std::atomic<bool> has_python_kernel{false};  // some kernel of it is a Python function
  std::atomic<const Program*> program{nullptr};  // of its schema at `generation`
  std::atomic<uint64_t> generation{0};
  // Derived from the schema, together with the program.
  const OperatorFacts* shared = nullptr;
  bool makes_views = false;  // some return shares memory with an argument
  uint64_t writes = 0;       // bits of the arguments that are written
  bool simple = false;       // no argument and no return is a list of tensors
  bool direct = false;       // Note [From Python to Python] may apply
  // The kernel that is_composite() looked at last, and whether it is composite.
  std::atomic<const lamella_kernel*> judged{nullptr};
  std::atomic<bool> composite{false};

  // Whether the kernel that serves these keys only calls operators.
  bool is_composite(uint64_t keys);
};

// The facts of an operator, with its program up to date; throws if the operator is not defined.
// NULL with a Python error set if its object cannot be made.
OpFacts* facts_of(const lamella_operator* op);
// The same without the program, for operators that need not be defined.
OpFacts* bare_facts_of(const lamella_operator* op);

// The arguments of a boxed call for a function in Python, trailing defaults left out: positional
// ones as a tuple, keyword-only ones as a dict. False with a Python error set if it fails.
bool pack_arguments(const Program& program, const lamella_value* arguments, Ref* args, Ref* kwargs);

int add_dispatch_table(PyObject* module);  // dispatch_table.cpp

// Stores the result of a function in Python as owned returns of its operator. On failure nothing is
// owned and the status carries the Python error. `function` names the function in errors.
lamella_status store_returns(OpFacts& facts, const lamella_value* arguments, PyObject* result,
                             const char* function, lamella_value* returns);

}  // namespace lamella::python
