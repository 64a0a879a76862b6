// Programs: schemas compiled into what the argument parser runs.
//
// Note [One parser for all operators]
//   The first call of an operator compiles the schemas of its overloads. A call then fills an array
//   of lamella_value on the C stack, trying overloads in order, and goes straight to the kernel's
//   boxed form. Nothing is allocated for the usual arguments. Only if no overload fits, the call is
//   examined again, slowly, to explain why.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "lamella/schema/schema.h"
#include "python/src/object.h"

namespace lamella::python {

enum class Kind : uint8_t {
  kTensor,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kComplex,
  kString,
  kGenerator,
  kScalarType,
  kLayout,
  kDevice,
  kMemoryFormat,
  kTensorList,
  kOptionalTensorList,
  kIntList,
  kFloatList,
  kBoolList,
  kList,  // of anything else: element type decides
  kDict,
  kTuple,
  kAny,     // by the value's own type
  kObject,  // a custom class: an object made by an operator
  kNever,   // a type that Python has no value for
};

struct Param {
  PyObject* name;  // interned; never freed
  uint16_t index;  // among the operator's arguments
  Kind kind;
  bool optional;  // takes None
  bool keyword_only;
  bool has_default;
  bool is_out;
  int16_t fixed_size;        // N of int[N], else 0
  SchemaType type;           // for everything that is not hot
  PyObject* default_object;  // if all calls can share one, else NULL; never freed
};

// One signature of one overload.
struct Program {
  const lamella_operator* op;
  uint16_t argument_count;
  uint16_t positional;      // params that may be given by position
  uint16_t needed;          // leading params without a default: calls with fewer values cannot fit
  int16_t varargs;          // param that may take all positions from its own on, or -1
  uint64_t least_work = 0;  // the least number of elements that a call counts as
  int16_t sizes = -1;  // argument of the first list of ints: what a factory makes has these sizes
  uint64_t required;   // bits of params without a default
  std::vector<Param> params;
  std::vector<uint16_t> outs;           // params given by `out=`
  std::vector<lamella_value> defaults;  // one for each argument
  std::vector<Kind> return_kinds;
  std::vector<SchemaType> return_types;
  std::vector<std::string> return_names;  // empty: a plain tuple
  std::atomic<PyTypeObject*> return_type{nullptr};
  std::string text;       // "add(Tensor input, Tensor other, *, Scalar alpha=1)"
  std::string schema;     // as the operator prints it
  bool supported = true;  // every param has a kind
  bool factory = false;   // creates a tensor: takes `requires_grad` too
};

// The programs that a call of one name chooses from. Tables are never freed, as calls may still use
// an earlier one.
struct ProgramTable {
  bool numbers;  // a Python number is accepted for a tensor
  std::vector<const Program*> programs;
  struct OpFacts* facts = nullptr;  // if there is one operator, and it is not one of Lamella's own
};

// A number that changes after operators are added or removed; read it before making what is cached
// under it: Note [Plans] in lamella/dispatch/operator_plan.h.
uint64_t operators_generation();

Kind kind_of(SchemaType type, bool* optional);
// The compiled form of a defined operator; throws if it has no schema any more.
const Program* program_of(const lamella_operator* op);
// All overloads of "aten::add", and the Python-only signatures of it, in the order they are tried.
// Null if the name has none.
const ProgramTable* make_table(const std::string& name);
// One overload.
const ProgramTable* make_table(const lamella_operator* op);

// A new reference to the named tuple's type of a program with named returns, or NULL with an error.
PyTypeObject* return_type_of(const Program& program);

}  // namespace lamella::python
