// torch::jit::setUTF8DecodingIgnore. It has no effect: invalid UTF-8 is always passed to Python as
// surrogates, so decoding never fails.
#pragma once
#include <c10/lamella_names.h>

namespace torch::jit {
inline void setUTF8DecodingIgnore(bool) {}
inline bool getUTF8DecodingIgnore() { return true; }
}  // namespace torch::jit
