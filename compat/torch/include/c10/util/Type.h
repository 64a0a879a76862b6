// c10::demangle, c10::demangle_type.
#pragma once
#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <typeinfo>

#include <c10/lamella_names.h>

namespace c10 {
inline std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = text != nullptr ? text : name;
  std::free(text);
  return result;
}
template <class T>
const char* demangle_type() {
  static const auto* name = new std::string(demangle(typeid(T).name()));
  return name->c_str();
}
}  // namespace c10
