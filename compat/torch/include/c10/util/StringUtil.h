// c10::str, c10::Join and other functions on strings.
#pragma once
#include <c10/util/Exception.h>

#include <string>

namespace c10 {
// The entries of a container, with the separator between them.
template <class Container>
std::string Join(const std::string& separator, const Container& entries) {
  std::string text;
  bool first = true;
  for (const auto& entry : entries) {
    if (!first) text += separator;
    text += lamella::str(entry);
    first = false;
  }
  return text;
}
inline bool isPrint(char c) { return c > 0x1f && c < 0x7f; }
// Writes a string as a literal, with escapes.
template <class Stream>
void printQuotedString(Stream& out, std::string_view text) {
  static constexpr char kNames[] = "\\\\''\"\"\aa\bb\ff\nn\rr\tt\vv";
  out << '"';
  for (char c : text) {
    size_t i = 0;
    while (i + 1 < sizeof(kNames) && kNames[i] != c) i += 2;
    if (i + 1 < sizeof(kNames)) {
      out << '\\' << kNames[i + 1];
    } else if (isPrint(c)) {
      out << c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      out << '\\' << char('0' + byte / 64) << char('0' + byte / 8 % 8) << char('0' + byte % 8);
    }
  }
  out << '"';
}
// What is behind the last slash, and that without its extension.
LAMELLA_LAZY std::string StripBasename(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
LAMELLA_LAZY std::string ExcludeFileExtension(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}
// Replaces each `from` and returns how often there was one.
LAMELLA_LAZY size_t ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  size_t count = 0;
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos; ++count) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return count;
}
}  // namespace c10
