// c10::Layout.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/layout.h"

namespace lamella {
LAMELLA_HIDDEN inline constexpr Layout kSparse = Layout::Sparse;
LAMELLA_HIDDEN inline constexpr Layout kSparseCsr = Layout::SparseCsr;
LAMELLA_HIDDEN inline constexpr Layout kMkldnn = Layout::Mkldnn;
LAMELLA_HIDDEN inline constexpr Layout kSparseCsc = Layout::SparseCsc;
LAMELLA_HIDDEN inline constexpr Layout kSparseBsr = Layout::SparseBsr;
LAMELLA_HIDDEN inline constexpr Layout kSparseBsc = Layout::SparseBsc;
LAMELLA_HIDDEN inline constexpr Layout kJagged = Layout::Jagged;
}  // namespace lamella
