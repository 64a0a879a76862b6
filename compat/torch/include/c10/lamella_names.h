// The namespaces c10, at and torch, through which Lamella's names are found. The other headers only
// add the names that PyTorch spells differently.
//
// Note [Directives, not copies]
//   A using-directive makes every name of Lamella reachable as at::…, c10::… and torch::… while
//   it stays one entity, so code that opens all three namespaces meets no ambiguity. Inner
//   namespaces that code may reopen (at::native, at::_ops, c10::impl, …) exist here from the start,
//   because a namespace declared later would hide Lamella's of the same name.
#pragma once

#if __cplusplus < 202002L
#error "Lamella's headers are C++20: compile with -std=c++20 where the package says -std=c++17"
#endif

#include "lamella/core/error_words.h"

namespace lamella {
namespace autograd {}
namespace ops {}
}  // namespace lamella

namespace c10 {
using namespace lamella;
namespace impl {}
namespace guts {}
namespace detail {}
}  // namespace c10

namespace at {
using namespace c10;
namespace native {
using namespace lamella;  // at::native::narrow is at::narrow
}  // namespace native
namespace _ops {
using namespace lamella::ops;
}
namespace impl {
using namespace c10::impl;
}
namespace detail {}
}  // namespace at

namespace torch {
using namespace at;
namespace autograd {
using namespace lamella::autograd;
}
namespace detail {}
namespace jit {}
}  // namespace torch
