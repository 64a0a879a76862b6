// Built-in targets, in libraries that are loaded when a module first names one of their targets.
#pragma once
#include <string_view>

namespace lamella::hlo {

// Loads the library that has this target, if any, so that it registers its targets. Throws an Error
// if the library cannot be loaded.
void load_built_in(std::string_view target);
// The same for a name whose prefix is similar to a library's, so that an error can suggest names.
void load_near_built_in(std::string_view target);

}  // namespace lamella::hlo
