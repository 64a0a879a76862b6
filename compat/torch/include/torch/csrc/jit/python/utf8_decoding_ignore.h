// torch::jit::setUTF8DecodingIgnore. Bytes that are no UTF-8 come to Python as surrogates, whatever
// is set, so nothing that an operator returns fails to be decoded.
#pragma once
#include <c10/lamella_names.h>

namespace torch::jit {
inline void setUTF8DecodingIgnore(bool) {}
inline bool getUTF8DecodingIgnore() { return true; }
}  // namespace torch::jit
