// Links an object file to an image, with LLVM's linker.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "lamella/graph/execute/code_image.h"

namespace lamella::hlo::compiler {

// Fills the image's block, addresses and entries: the offsets of the functions with these names.
void link_image(std::span<const char> object, const std::vector<std::string>& names,
                CodeImage* image);

}  // namespace lamella::hlo::compiler
