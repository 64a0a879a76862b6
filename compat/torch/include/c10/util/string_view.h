// c10::string_view.
#pragma once
#include <c10/lamella_names.h>

#include <string_view>

namespace c10 {
template <class C>
using basic_string_view = std::basic_string_view<C>;
using std::string_view;
}  // namespace c10
