// ShapeReader: parses the shapes of a module's text, and caches them by their spelling because most
// occur many times. Internal to lamella/graph.
#pragma once
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/names.h"
#include "lamella/graph/hlo/shape_scanner.h"

namespace lamella::hlo {

class ShapeReader {
 public:
  explicit ShapeReader(Module* module) : module_(*module) {}

  // Parses the shape at the scanner's position and returns the module's interned object.
  const Shape* read(Scanner& s) {
    s.skip();
    size_t begin = s.position();
    std::string_view text = s.text();
    // The spelling of an array ends with its layout or dimensions. Equal spellings are equal
    // shapes.
    size_t end = begin;
    while (end < text.size() && Scanner::is_word(text[end])) ++end;
    if (end < text.size() && text[end] == '[') {
      while (end < text.size() && text[end] != ']') ++end;
      ++end;
      s.seek(std::min(end, text.size()));
      bool has_layout = layout_follows(s);
      s.seek(begin);
      if (has_layout && text[end] == '{') {
        while (end < text.size() && text[end] != '}') ++end;
        ++end;
        has_layout = false;
      }
      // A layout behind a blank is not part of the spelling, so the shape is parsed.
      if (end <= text.size() && !has_layout) {
        std::string_view spelling = text.substr(begin, end - begin);
        if (const Shape* known = spellings_.find(spelling)) {
          s.seek(end);
          return known;
        }
      }
    }
    const Shape* made = module_.intern(scan_shape(s));
    if (made->is_array()) spellings_.insert(s.from(begin), const_cast<Shape*>(made));
    return made;
  }

 private:
  Module& module_;
  Names<Shape> spellings_;
};

}  // namespace lamella::hlo
