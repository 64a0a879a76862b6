// Conversion of modules to and from JSON.
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
//   Shapes, layouts and literals are in XLA's text form. Attributes have their names in HLO text,
//   and values by kind: numbers, booleans, lists, words and strings, names of computations, and
//   objects for windows, paddings and slices. Text that is not UTF-8 is {"bytes": [numbers]}.
//   Absent parts have their defaults. "signature", "bytes" (of the result), "cost" (see cost.h) and
//   "metadata" (the fields of that attribute) are for other tools: from_json ignores them.
// With an indent of -1 the JSON is on one line.
std::string to_json(const Module& module, int indent = 1);

// Parses the output of to_json; the module is verified unless `verify` is false. The result has the
// same to_string as the original module. Throws an Error with the path of the wrong part:
// "hlo: json: computations[2].instructions[0].opcode: expected ...".
std::unique_ptr<Module> from_json(std::string_view text, bool verify = true);

}  // namespace lamella::hlo
