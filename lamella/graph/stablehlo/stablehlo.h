// Reading StableHLO: its portable bytecode (VHLO in MLIR's bytecode) and its text, as modules.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo::stablehlo {

// Whether these bytes begin as MLIR's bytecode does.
bool is_bytecode(std::string_view data);
// Whether a text is StableHLO's, and not HLO's.
bool is_text(std::string_view text);
// The module of a bytecode or of a text, told apart by their first bytes. Throws lamella::Error:
// "stablehlo: byte 120: expected ..." or "stablehlo: line 3, column 7: expected ...". The module is
// verified unless `verify` is false. `entry` names the function that is the program.
std::unique_ptr<Module> read(std::string_view data, bool verify = true,
                             std::string_view entry = "main");

// The module as a portable artifact of VHLO 1.10, which JAX and others read. Parameters and results
// of tuples become their arrays. Throws an Error that names an instruction StableHLO does not have.
std::string to_bytecode(const Module& module);

}  // namespace lamella::hlo::stablehlo
