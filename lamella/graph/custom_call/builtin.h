// Targets that Lamella brings itself, in libraries that are loaded when a module first names one.
#pragma once
#include <string_view>

namespace lamella::hlo {

// Makes sure that the library which has targets of this name, if any, is loaded and has registered
// them. Throws an Error if there is one and it cannot be loaded.
void load_built_in(std::string_view target);
// The same where the name only begins nearly as theirs do, so that an error can list their names.
void load_near_built_in(std::string_view target);

}  // namespace lamella::hlo
