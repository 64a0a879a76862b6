// The cast lists of ops/autocast.yaml: which operators autocast casts for which device type.
#pragma once

#include <string>
#include <vector>

#include "codegen/model.h"

namespace lamella::codegen {

// Reads the files and gives the operators of `model` their autocast classes. Every error goes to
// `diagnostics`.
void apply_autocast_lists(const std::vector<std::string>& paths, const ModelOptions& options,
                          Model& model, SourceSet& sources, Diagnostics& diagnostics);

}  // namespace lamella::codegen
