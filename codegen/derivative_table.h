// The formulas of one entry of derivatives.yaml, or of one key of its `dispatch`. Internal to the
// generator.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/derivatives.h"

namespace lamella::codegen {

// Names of arguments or returns, and formulas.
using TableFields = std::vector<std::pair<YamlPtr, YamlPtr>>;

// The rule of output_differentiability for one return.
struct OutputRule {
  bool differentiable = true;
  YamlPtr condition;  // an expression that decides for each call; null: none
};

// `outputs`: the rules of output_differentiability, one for each return, if the entry has it.
DerivativeTable read_table(const NativeFunction& function, const std::string& key,
                           const TableFields& fields,
                           const std::optional<std::vector<OutputRule>>& outputs,
                           Diagnostics& diagnostics);

// An operator's name in messages: without the namespace of built-in operators.
std::string bare_name(const NativeFunction& function);
// "line 3", with the file unless it is that of `seen_from`.
std::string line_of(const Location& place, const Location& seen_from);

}  // namespace lamella::codegen
