// TextReader: types and attributes of MLIR's text. Internal to lamella/graph/stablehlo.
#pragma once
#include <unordered_map>

#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

class TextReader {
 public:
  TextReader(std::string_view text, Arena& arena) : s(text, "stablehlo"), arena_(arena) {}

  Scanner s;

  Arena& arena() { return arena_; }
  // A word of letters, digits, '_', '.' and '$'.
  std::string_view word();
  bool at_word(std::string_view wanted);
  bool take_word(std::string_view wanted);
  // Behind '@': a word or a string.
  std::string_view symbol();
  std::string_view quoted();

  const Type* type();
  // "(a, b) -> c", "a, b -> c" or "a, b": operands and results, or the types that are listed.
  void types(std::vector<const Type*>& before, std::vector<const Type*>& after, bool* has_arrow);
  const Attribute* attribute();
  // The entries between braces; a name alone is a unit.
  void dictionary(std::vector<Named>& entries);
  // "[b, f, 0]x[0, i, o]->[b, f, 0]", as the attributes of a convolution.
  void convolution_dimensions(std::vector<Named>& into);
  // "loc(...)", which is skipped. False if none is next.
  bool location();
  // "#name = ..." at the top of a text.
  void alias();

  const Attribute* integer(int64_t value);
  const Attribute* list(std::vector<const Attribute*> parts);
  const Attribute* integers(const std::vector<int64_t>& numbers);
  const Attribute* text_attribute(Attribute::Kind kind, std::string_view text);
  // Text up to the bracket that closes the one that was taken, which is taken as well.
  std::string_view rest_of_brackets();

 private:
  struct Deeper {
    explicit Deeper(TextReader* reader) : reader_(reader) {
      if (++reader_->depth_ > kMostNested) {
        reader_->s.fail("expected at most ", kMostNested, " levels within each other");
      }
    }
    ~Deeper() { --reader_->depth_; }
    TextReader* reader_;
  };
  const Type* tensor(Type::Kind kind);
  const Type* other_type(size_t begin);
  ElementType element();
  void bounds(Type* made);
  const Attribute* hashed();
  const Attribute* in_angles();
  const Attribute* number();
  const Attribute* dense();
  const Attribute* array();
  void element_value(std::string& bytes, ElementType type);
  void elements(std::string& bytes, ElementType type, const std::vector<int64_t>& sizes,
                size_t depth, size_t* count);

  Arena& arena_;
  std::unordered_map<std::string_view, const Attribute*> aliases_;
  int depth_ = 0;
};

}  // namespace lamella::hlo::stablehlo
