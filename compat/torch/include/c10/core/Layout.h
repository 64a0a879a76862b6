// c10::Layout.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/layout.h"

namespace lamella {
LAMELLA_HIDDEN inline constexpr Layout kSparse = Layout::Sparse, kSparseCsr = Layout::SparseCsr,
                                       kMkldnn = Layout::Mkldnn, kSparseCsc = Layout::SparseCsc,
                                       kSparseBsr = Layout::SparseBsr,
                                       kSparseBsc = Layout::SparseBsc, kJagged = Layout::Jagged;
}  // namespace lamella
