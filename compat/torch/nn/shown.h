// Printing of modules, in PyTorch's format torch::nn::Name(options).
#pragma once
#include <cxxabi.h>

#include <cstdlib>
#include <iosfwd>
#include <tuple>

#include "lamella/nn/options.h"

namespace lamella::nn::detail {

// The enumerator's spelling: kMean for the word "mean".
LAMELLA_LAZY std::string spelled(Word word) {
  std::string name = "k";
  bool is_first = true;
  for (const char* c = word == kReLU ? "ReLU" : word.text; *c != 0; ++c) {
    if (*c == '_' || *c == '-') {
      is_first = true;
    } else {
      const bool raise = is_first && *c >= 'a' && *c <= 'z';
      name += raise ? static_cast<char>(*c - 'a' + 'A') : *c;
      is_first = false;
    }
  }
  return name;
}
// Writes the parts in order; bools are written as words, lists in brackets. The stream's type is
// only needed on instantiation, so that a program that prints nothing needs no <ostream>.
template <class... A>
void show(std::ostream& stream, const A&... parts) {
  auto& out =
      static_cast<typename lamella::detail::Later<std::tuple<A...>, std::ostream>::type&>(stream);
  auto one = [&out](const auto& part) {
    using T = std::remove_cvref_t<decltype(part)>;
    if constexpr (std::is_same_v<T, bool>) {
      out << (part ? "true" : "false");
    } else if constexpr (std::is_same_v<T, Word>) {
      out << spelled(part);
    } else if constexpr (std::is_convertible_v<T, std::string_view> || std::is_same_v<T, Tensor>) {
      out << part;
    } else if constexpr (requires { part.begin(); }) {
      const char* before = "[";
      for (const auto& each : part) {
        out << before << each;
        before = ", ";
      }
      out << "]";
    } else {
      out << part;
    }
  };
  (one(parts), ...);
}
LAMELLA_LAZY std::string class_name(const char* mangled) {
  char* text = ::abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
  std::string name = text != nullptr ? text : mangled;
  std::free(text);
  constexpr std::string_view before = "lamella::nn::", after = "ImplOf<0>";
  if (name.starts_with(before) && name.ends_with(after)) {
    name = "torch::nn::" + name.substr(before.size(), name.size() - before.size() - after.size()) +
           "Impl";
  }
  return name;
}
LAMELLA_LAZY std::string in_braces(IntArrayRef numbers) {
  std::string text = "{";
  for (int64_t number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "}";
}
template <size_t D>
auto shown(const Each<D>& numbers) {
  if constexpr (D == 1) {
    return numbers[0];
  } else {
    return IntArrayRef(numbers);
  }
}
// The sizes of an adaptive pool, None for that of the input.
template <size_t D>
std::string shown_adaptive(const Each<D>& sizes) {
  std::string text;
  for (size_t i = 0; i < D; ++i) {
    text += (i > 0 ? ", " : "") + (sizes[i] < 0 ? "None" : std::to_string(sizes[i]));
  }
  return D == 1 ? text : "[" + text + "]";
}
template <class T>
const T& shown(const T& part) {
  return part;
}
template <class Options>
const char* inplace_shown(const Options& options, const char* before = "") {
  return !options.inplace() ? "" : *before == 0 ? "inplace=true" : ", inplace=true";
}
// The options; throws if they have bounds that are not in order.
template <class Options>
const Options& checked(const Options& given) {
  if constexpr (requires { given.max_val(); }) {
    LAMELLA_CHECK(given.max_val() > given.min_val(), "Hardtanh: expected 'max_val' to be above ",
                  given.min_val(), ", got ", given.max_val());
  }
  return given;
}
// Writes torch::nn::Name(parts).
template <class... A>
void show_module(std::ostream& stream, const char* name, const A&... parts) {
  show(stream, "torch::nn::", name, "(", shown(parts)..., ")");
}

}  // namespace lamella::nn::detail

// Defines pretty_print(), which writes the module's name and options.
#define LAMELLA_SHOWN(...)                                   \
  void pretty_print(std::ostream& stream) const override {   \
    ::lamella::nn::detail::show_module(stream, __VA_ARGS__); \
  }
// The same for a module whose inner modules are printed below it.
#define LAMELLA_SHOWN_AS(name)                                \
  void pretty_print(std::ostream& stream) const override {    \
    ::lamella::nn::detail::show(stream, "torch::nn::", name); \
  }
