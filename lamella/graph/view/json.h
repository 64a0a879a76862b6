// Modules as JSON, and back.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [The JSON of a module]
//   {"format": "lamella.hlo", "version": 1, "name", "entry", "is_scheduled", "entry_layout":
//   {"parameters", "result"}, "input_output_alias": [...], "attributes": [[name, text], ...],
//   "computations": [{"name", "root", "signature", "attributes", "instructions":
//   [{"name", "opcode", "shape", "operands": [names], "parameter_number", "literal",
//   "attributes": {name: value}, "bytes", "cost": {"flops", "transcendentals", "bytes"},
//   "metadata": {...}}]}]}.
//   Shapes, layouts and literals are in XLA's text. Attributes have the names of the text and
//   values of their kind: numbers, booleans, lists, words and strings, names of computations,
//   objects for windows, paddings and slices. Text that is no UTF-8 is {"bytes": [numbers]}. Absent
//   parts have their defaults. "signature", "bytes" (of the result), "cost" (see cost.h) and
//   "metadata" (what the attribute of that name says, field by field) are for readers: from_json
//   does not look at them.
// With an indent of -1 all is in one line.
std::string to_json(const Module& module, int indent = 1);

// Reads what to_json gives; the module is verified unless `verify` is false. to_string of the
// result is that of the module it came from. Throws an Error that says where something is wrong:
// "hlo: json: computations[2].instructions[0].opcode: expected ...".
std::unique_ptr<Module> from_json(std::string_view text, bool verify = true);

}  // namespace lamella::hlo
