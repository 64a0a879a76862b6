// Helpers of the dispatcher's tests: registrations, look-ups, tensors, expected errors.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "lamella/dispatch/library.h"

namespace lamella {

inline Library fragment(const char* name_space) {
  return Library(Library::FRAGMENT, name_space, std::nullopt, "test.cpp", 1);
}
inline Library implementation(const char* name_space, DispatchKey key) {
  return Library(Library::IMPL, name_space, key, "test.cpp", 2);
}
inline OperatorHandle find(const char* name, const char* overload = "") {
  return Dispatcher::singleton().findSchemaOrThrow(name, overload);
}
// A float32 tensor on the CPU, or elsewhere.
inline TensorBase make_tensor(std::initializer_list<int64_t> sizes,
                              DeviceType device = DeviceType::CPU) {
  lamella_tensor* tensor = nullptr;
  detail::check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.begin(),
                                     static_cast<uint8_t>(ScalarType::Float),
                                     static_cast<uint8_t>(device), -1, &tensor));
  return TensorBase::adopt(tensor);
}
template <class F>
void expect_error(F&& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "expected an error: " << text;
  } catch (const std::exception& error) {
    EXPECT_EQ(std::string(error.what()), text);
  }
}

}  // namespace lamella
