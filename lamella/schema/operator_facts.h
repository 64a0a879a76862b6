// OperatorFacts: the arguments that an operator reads, writes, returns and aliases, by its schema.
//
// Note [What a return is]
//   A return and an argument may share memory if a set of the return is among the argument's sets,
//   before or after the call, or if it is `*` and the argument has a set. A written return
//   (`Tensor(a!)`) is the same tensor as the first written argument that it shares a set with. It
//   may be a view of every other argument that it shares a set with.
#pragma once
#include <cstdint>
#include <vector>

#include "lamella/schema/schema.h"

namespace lamella {

struct LAMELLA_PRIVATE_API OperatorFacts {
  struct ArgumentFacts {
    bool is_tensor = false;   // or a list of tensors
    bool is_list = false;     // of any element type
    bool is_written = false;  // a tensor, or a list of them, that is written
    bool is_out = false;
  };
  struct ReturnFacts {
    bool is_tensor = false;
    bool is_list = false;
    int written = -1;             // the written argument that it is; -1: none
    std::vector<uint16_t> bases;  // arguments that it may be a view of
  };
  std::vector<ArgumentFacts> arguments;
  std::vector<ReturnFacts> returns;
  std::vector<uint16_t> tensors;       // arguments that are tensors or lists of them
  std::vector<uint16_t> written;       // those of them that are written
  std::vector<uint16_t> not_returned;  // those of `written` that are not returned
  std::vector<uint16_t> viewed;        // arguments that some return may be a view of

  OperatorFacts() = default;
  explicit OperatorFacts(const FunctionSchema& schema);
};

}  // namespace lamella
