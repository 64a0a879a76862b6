// Helpers for tests of typed custom calls: running a text, and registering handlers.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A module, its executable, and arguments that are filled in order.
class Program {
 public:
  explicit Program(const std::string& body, CompileOptions options = {})
      : module_(parse_module("HloModule m\n\nENTRY e {\n" + body + "}\n")),
        executable_(make_evaluator(module_, options)) {}

  template <class T>
  Value argument(size_t number, std::initializer_list<T> elements) const {
    Value value = Value::uninitialized(module_->entry->parameters[number]->shape);
    size_t n = 0;
    for (T element : elements) value.values<T>()[n++] = element;
    return value;
  }
  Value run(std::vector<Value> arguments = {}) const { return executable_->run(arguments); }
  const Executable& executable() const { return *executable_; }

 private:
  std::shared_ptr<const Module> module_;
  std::unique_ptr<Executable> executable_;
};

template <class T>
std::vector<T> elements(const Value& value) {
  auto span = value.values<T>();
  return {span.begin(), span.end()};
}

// The text of the error that the statement throws.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.msg();
  }
  return "no error";
}

}  // namespace lamella::hlo
