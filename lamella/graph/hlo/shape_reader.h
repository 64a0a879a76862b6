// ShapeReader: reads the shapes of a module's text, most of which stand there many times. Internal
// to the graph room.
#pragma once
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/names.h"
#include "lamella/graph/hlo/shape_scanner.h"

namespace lamella::hlo {

class ShapeReader {
 public:
  explicit ShapeReader(Module* module) : module_(*module) {}

  // The module's object for the shape where the scanner stands.
  const Shape* read(Scanner& s) {
    s.skip();
    size_t begin = s.position();
    std::string_view text = s.text();
    // An array's spelling ends with its layout, or its dimensions: the same spelling, the same
    // shape.
    size_t end = begin;
    while (end < text.size() && Scanner::is_word(text[end])) ++end;
    if (end < text.size() && text[end] == '[') {
      while (end < text.size() && text[end] != ']') ++end;
      ++end;
      if (end < text.size() && text[end] == '{') {
        while (end < text.size() && text[end] != '}') ++end;
        ++end;
      }
      if (end <= text.size()) {
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
