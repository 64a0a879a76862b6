// The tags that operators may carry.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/yaml_source.h"

namespace lamella::codegen {

// The names in ops/tags.yaml, which is built in, and in the files given.
std::set<std::string> load_tags(const std::vector<std::string>& paths, SourceSet& sources,
                                Diagnostics& diagnostics);

}  // namespace lamella::codegen
