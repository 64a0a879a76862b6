// The longer fixed texts of generated files, out of codegen/templates/, which are built in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lamella::codegen {

extern const char* const kTensorTemplate;  // templates/tensor.h.in
extern const char* const kStubTemplate;    // templates/stub.pyi.in
extern const char* const kModuleTemplate;  // templates/module.py.in

// Replaces @@NAME@@ by its text, for each name given.
std::string fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values);

}  // namespace lamella::codegen
