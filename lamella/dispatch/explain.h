// Explanations of dispatch: which kernel a call reaches, and why. Internal to Lamella.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

// "float32[2, 3] on cpu" for a tensor, a short text for any other value.
std::string describe_value(const lamella_value& value);

// Which kernel a call would reach, and why: Note [Explaining a call] in explain.cpp.
struct LAMELLA_PRIVATE_API Explanation {
  struct Step {
    DispatchKey key;
    std::string verdict;  // "runs", "skipped"
    std::string reason;
  };
  std::string operator_name;
  std::string schema;
  std::string key_set;
  std::vector<Step> steps;  // highest priority first; the last one runs, unless nothing does
  std::string kernel;       // "CPU kernel registered at file:line"; empty: none
  std::string str() const;
};
LAMELLA_PRIVATE_API Explanation explain(const lamella_operator* op, const lamella_value* arguments);

// The report of a missing kernel, five lines at most.
std::string missing_kernel_report(const lamella_operator* op, uint64_t key_set,
                                  const lamella_value* arguments);

}  // namespace lamella
