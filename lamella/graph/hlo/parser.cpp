// The parser of XLA's HLO text.
//
// Note [Reading in one pass]
//   A text is parsed once, from front to back. Operands precede their users. Computations may be
//   named before they are defined: such references are recorded and resolved at the end. The whole
//   text is copied into the module's arena once, and names and text attributes are views of that
//   copy. A shape whose spelling was seen before is found by its spelling.
#include <algorithm>
#include <cstring>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/module_header.h"
#include "lamella/graph/hlo/names.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/short_pair.h"

namespace lamella::hlo {
namespace {

class Parser {
 public:
  Parser(std::string_view text, Module* module)
      : module_(*module), s_(module->arena().copy(text), "hlo"), shapes_(module) {}

  void run() {
    scan_header(s_, shapes_, &module_);
    while (!s_.at_end()) computation();
    if (module_.computations.empty()) s_.fail("expected a computation, got the end");
    if (module_.entry == nullptr) {
      if (module_.computations.size() != 1)
        s_.fail("expected one computation marked ENTRY, got none");
      module_.entry = module_.computations.front();
    }
    for (const Fixup& fixup : fixups_) {
      Computation* found = computations_.find(fixup.name);
      if (found == nullptr) {
        s_.fail_at(fixup.position,
                   str("expected the name of a computation, got '", fixup.name, "'"));
      }
      *fixup.place = found;
    }
    order_computations(module_);
  }

 private:
  // A reference to a computation that may be defined further down; resolved at the end.
  struct Fixup {
    Computation** place;
    std::string_view name;
    size_t position;
  };
  struct Called {
    AttributeKey key;
    std::string_view name;
    size_t position;
  };

  // ---- Computations ----

  void computation() {
    s_.skip();
    size_t begin = s_.position();
    bool entry = false;
    std::string_view name = name_();
    if (name == "ENTRY") {
      entry = true;
      s_.skip();
      begin = s_.position();
      name = name_();
    }
    if (name.empty()) s_.fail("expected a computation, got ", s_.next());
    if (s_.peek() == '(') {  // (a: f32[2], b: s32[]) -> f32[2]
      skip_value(s_);
      s_.expect("->");
      shape();
    }
    Computation* made = module_.add_computation(name);
    if (!computations_.insert(name, made)) {
      s_.fail_at(begin, str("expected computations of different names, got '", name, "' again"));
    }
    body(made, instructions_);
    instructions_.clear();
    if (s_.take(',')) {
      s_.skip();
      size_t from = s_.position();
      do {
        s_.word();
        s_.expect('=');
        skip_value(s_);
        made->attributes = s_.from(from);
      } while (s_.take(','));
    }
    if (entry) {
      if (module_.entry != nullptr) {
        s_.fail_at(begin, "expected one computation marked ENTRY, got a second");
      }
      module_.entry = made;
    }
  }

  void body(Computation* made, Names<Instruction>& names) {
    Names<Instruction>* outer = std::exchange(names_, &names);
    Computation* outer_computation = std::exchange(computation_, made);
    s_.expect('{');
    size_t open = s_.position();
    while (!s_.take('}')) {
      if (s_.position() >= s_.text().size()) {
        s_.fail_at(open, str("expected '}' to end computation '", made->name, "', got the end"));
      }
      instruction(made);
      s_.take(';');
    }
    if (made->instructions.empty()) {
      s_.fail_at(open, str("expected computation '", made->name, "' to have an instruction"));
    }
    if (made->root == nullptr) made->root = made->instructions.back();
    for (size_t i = 0; i < made->parameters.size(); ++i) {
      if (made->parameters[i] == nullptr) {
        s_.fail_at(open, str("expected computation '", made->name, "' to have parameter(", i,
                             "), as it has ", made->parameters.size() - 1, ", got none"));
      }
    }
    names_ = outer;
    computation_ = outer_computation;
  }

  void instruction(Computation* made) {
    s_.skip();
    size_t begin = s_.position();
    std::string_view name = name_();
    bool root = false;
    if (name == "ROOT") {
      root = true;
      s_.skip();
      begin = s_.position();
      name = name_();
    }
    if (name.empty()) s_.fail("expected an instruction, got ", s_.next());
    s_.expect('=');
    const Shape* result = shape();
    s_.skip();
    size_t opcode_at = s_.position();
    std::string_view word = s_.word();
    auto opcode = opcode_from_name(word);
    std::optional<ShortPair> pair;
    if (!opcode) {
      pair = short_pair(word);
      if (pair) opcode = pair->wrapped;
    }
    if (!opcode) {
      s_.seek(opcode_at);
      s_.fail("expected an opcode, got ", s_.next());
    }
    auto* one = module_.arena().make<Instruction>();
    one->opcode = *opcode;
    one->name = name;
    one->shape = result;
    one->parent = made;
    one->index = static_cast<int64_t>(made->instructions.size());
    s_.expect('(');
    if (*opcode == Opcode::Constant) {
      one->literal = module_.arena().make<Literal>(Literal::scan(s_, *result));
      s_.expect(')');
    } else if (*opcode == Opcode::Parameter) {
      parameter(one);
      s_.expect(')');
    } else {
      operands(one);
      bool takes_start = pair && pair->opcode != Opcode::AsyncStart;
      int wanted = takes_start ? 1 : opcode_operands(*opcode);
      if (wanted >= 0 && one->operands.size() != static_cast<size_t>(wanted)) {
        s_.fail_at(opcode_at,
                   str("expected '", word, "' to have ", wanted,
                       wanted == 1 ? " operand" : " operands", ", got ", one->operands.size()));
      }
    }
    attributes(one);
    if (pair) asynchronous(one, *pair, opcode_at);
    if (!names_->insert(name, one)) {
      s_.fail_at(begin, str("expected instructions of different names, got '", name, "' again"));
    }
    made->instructions.push_back(one);
    if (root) {
      if (made->root != nullptr) {
        s_.fail_at(begin, str("expected one instruction marked ROOT in computation '", made->name,
                              "', got a second"));
      }
      made->root = one;
    }
  }
  void asynchronous(Instruction* one, const ShortPair& pair, size_t at) {
    if (pair.opcode != Opcode::AsyncStart) {
      one->opcode = pair.opcode;
      return;
    }
    if (!one->shape->is_tuple() || one->shape->tuple_shapes().size() < 2) {
      s_.fail_at(at, str("expected the start of a pair to give its operands and its result, got ",
                         one->shape->to_string(false)));
    }
    Computation* body = nullptr;
    for (int64_t n = 0; body == nullptr; ++n) {
      std::string name = n == 0 ? str(one->name, ".async") : str(one->name, ".async.", n);
      if (computations_.find(name) != nullptr) continue;
      body = module_.add_computation(name);
      computations_.insert(body->name, body);
    }
    wrap_in_start(module_, one, body);
  }
  void parameter(Instruction* one) {
    s_.skip();
    size_t at = s_.position();
    int64_t number = s_.integer();
    auto& parameters = one->parent->parameters;
    // Rejects numbers that a text of this size cannot need, so that the table stays small.
    if (number < 0 || number > static_cast<int64_t>(s_.text().size())) {
      s_.fail_at(at, str("expected the number of a parameter, got ", number));
    }
    if (static_cast<size_t>(number) >= parameters.size()) {
      parameters.resize(static_cast<size_t>(number) + 1);
    }
    if (parameters[static_cast<size_t>(number)] != nullptr) {
      s_.fail_at(at, str("expected parameters of different numbers, got ", number, " again"));
    }
    parameters[static_cast<size_t>(number)] = one;
    one->parameter_number = number;
  }
  void operands(Instruction* one) {
    scratch_.clear();
    while (!s_.take(')')) {
      s_.skip();
      size_t at = s_.position();
      if (s_.peek() == '(') shape();  // the operand's shape may precede it
      std::string_view name = name_();
      Instruction* found = names_->find(name);
      if (found == nullptr && !name.empty() && s_.peek() == '[') {
        s_.seek(at);
        shape();
        s_.skip();
        at = s_.position();
        name = name_();
        found = names_->find(name);
      }
      if (found == nullptr) {
        if (name.empty()) s_.fail("expected an operand, got ", s_.next());
        s_.fail_at(at, str("expected the name of an instruction above, got '", name, "'"));
      }
      scratch_.push_back(found);
      if (s_.peek() != ')') s_.expect(',');
    }
    one->operands = module_.arena().copy(std::span<Instruction* const>(scratch_));
  }

  // ---- Attributes ----

  void attributes(Instruction* one) {
    attributes_.clear();
    size_t first_called = called_.size();
    while (s_.take(',')) {
      s_.skip();
      size_t at = s_.position();
      std::string_view word = s_.word();
      auto key = attribute_from_name(word);
      if (!key)
        s_.fail_at(
            at, str("expected an attribute of '", opcode_name(one->opcode), "', got '", word, "'"));
      for (const Attribute& before : attributes_) {
        if (before.key == *key) {
          s_.fail_at(at, str("expected each attribute once, got '", word, "' again"));
        }
      }
      s_.expect('=');
      size_t place = attributes_.size();
      // The value may hold a computation in braces, whose instructions have attributes too.
      std::vector<Attribute> outer = std::move(attributes_);
      attributes_.clear();
      Attribute made = value(*key);
      attributes_ = std::move(outer);
      attributes_.insert(attributes_.begin() + static_cast<ptrdiff_t>(place), made);
    }
    std::stable_sort(attributes_.begin(), attributes_.end(),
                     [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
    one->attributes = module_.arena().copy(std::span<const Attribute>(attributes_));
    // The attributes have their final addresses here, so fixups may point into them.
    for (size_t c = first_called; c < called_.size(); ++c) {
      for (Attribute& attribute : one->attributes) {
        if (attribute.key != called_[c].key) continue;
        fixups_.push_back({&attribute.computation, called_[c].name, called_[c].position});
      }
    }
    called_.resize(first_called);
  }

  Attribute value(AttributeKey key) {
    Attribute made;
    made.key = key;
    made.integer = 0;
    Arena& arena = module_.arena();
    switch (attribute_kind(key)) {
      case AttributeKind::Integer:
        made.integer = s_.integer();
        break;
      case AttributeKind::Boolean:
        made.integer = scan_boolean(s_) ? 1 : 0;
        break;
      case AttributeKind::Real:
        made.real = Literal::scan(s_, Shape::scalar(ElementType::F64)).real_at(0);
        break;
      case AttributeKind::Integers: {
        integers_.clear();
        s_.expect('{');
        while (!s_.take('}')) {
          integers_.push_back(s_.integer());
          if (s_.peek() != '}') s_.expect(',');
        }
        set_span(&made, &made.integer_data, arena.copy(std::span<const int64_t>(integers_)));
        break;
      }
      case AttributeKind::Word: {
        std::string_view word = s_.word();
        if (word.empty()) s_.fail("expected a word, got ", s_.next());
        set_text(&made, word);
        break;
      }
      case AttributeKind::String:
        set_text(&made, scan_quoted(s_, arena));
        break;
      case AttributeKind::Text: {
        s_.skip();
        size_t begin = s_.position();
        if (key == AttributeKey::Literal) {  // s32[2] {1, 2}
          Shape shape = scan_shape(s_);
          Literal::scan(s_, shape);
        } else {
          skip_value(s_);
        }
        set_text(&made, s_.from(begin));
        break;
      }
      case AttributeKind::Window: {
        auto dimensions = scan_window(s_);
        set_span(&made, &made.window_data,
                 arena.copy(std::span<const WindowDimension>(dimensions)));
        break;
      }
      case AttributeKind::DimLabels:
        made.convolution = arena.make<ConvolutionDimensions>(scan_dim_labels(s_));
        break;
      case AttributeKind::Padding: {
        auto dimensions = scan_padding(s_);
        set_span(&made, &made.padding_data,
                 arena.copy(std::span<const PaddingDimension>(dimensions)));
        break;
      }
      case AttributeKind::Slices: {
        auto dimensions = scan_slices(s_);
        set_span(&made, &made.slice_data, arena.copy(std::span<const SliceDimension>(dimensions)));
        break;
      }
      case AttributeKind::Computation:
        if (s_.peek() == '{') {
          made.computation = nested_computation(key);
        } else {
          Named named = computation_name();
          called_.push_back({key, named.name, named.position});
        }
        break;
      case AttributeKind::Computations: {
        std::vector<Named> names;
        s_.expect('{');
        while (!s_.take('}')) {
          names.push_back(computation_name());
          if (s_.peek() != '}') s_.expect(',');
        }
        std::vector<Computation*> empty(names.size());
        set_span(&made, &made.computation_data, arena.copy(std::span<Computation* const>(empty)));
        for (size_t i = 0; i < names.size(); ++i) {
          fixups_.push_back({&made.computation_data[i], names[i].name, names[i].position});
        }
        break;
      }
      case AttributeKind::Instructions: {
        std::vector<Instruction*> found;
        s_.expect('{');
        while (!s_.take('}')) {
          s_.skip();
          size_t at = s_.position();
          std::string_view name = name_();
          found.push_back(names_->find(name));
          if (found.back() == nullptr) {
            s_.fail_at(at, str("expected the name of an instruction above, got '", name, "'"));
          }
          if (s_.peek() != '}') s_.expect(',');
        }
        set_span(&made, &made.instruction_data, arena.copy(std::span<Instruction* const>(found)));
        break;
      }
      case AttributeKind::Shapes: {
        std::vector<const Shape*> found;
        s_.expect('{');
        while (!s_.take('}')) {
          found.push_back(shape());
          if (s_.peek() != '}') s_.expect(',');
        }
        set_span(&made, &made.shape_data, arena.copy(std::span<const Shape* const>(found)));
        break;
      }
      case AttributeKind::ShapeOf:
        made.shape = shape();
        break;
      case AttributeKind::Aliasing: {
        auto* found = arena.make<std::vector<OperandAlias>>();
        s_.expect('{');
        while (!s_.take('}')) {
          OperandAlias alias;
          alias.output = scan_braced_integers(s_);
          s_.expect(':');
          s_.expect('(');
          alias.operand = s_.integer();
          if (s_.take(',')) alias.operand_index = scan_braced_integers(s_);
          s_.expect(')');
          found->push_back(std::move(alias));
          if (s_.peek() != '}') s_.expect(',');
        }
        made.alias_data = found->data();
        made.size = static_cast<uint32_t>(found->size());
        break;
      }
    }
    return made;
  }
  struct Named {
    std::string_view name;
    size_t position;
  };
  Named computation_name() {
    s_.skip();
    size_t at = s_.position();
    std::string_view name = name_();
    if (name.empty()) s_.fail("expected the name of a computation, got ", s_.next());
    return {name, at};
  }
  // to_apply={ ... }: a computation without a name of its own.
  Computation* nested_computation(AttributeKey key) {
    if (++depth_ > kMaxDepth) s_.fail("expected at most ", kMaxDepth, " nested computations");
    std::string name;
    do {
      name = str(attribute_name(key), ".nested.", ++nested_count_);
    } while (computations_.find(name) != nullptr);
    Computation* made = module_.add_computation(name);
    computations_.insert(made->name, made);
    std::vector<Instruction*> outer_scratch = std::move(scratch_);
    Names<Instruction> names;
    body(made, names);
    scratch_ = std::move(outer_scratch);
    --depth_;
    return made;
  }

  template <class T, class U>
  static void set_span(Attribute* made, T* place, std::span<U> values) {
    *place = values.data();
    made->size = static_cast<uint32_t>(values.size());
  }
  static void set_text(Attribute* made, std::string_view text) {
    made->text_data = text.data();
    made->size = static_cast<uint32_t>(text.size());
  }

  // ---- Words and shapes ----

  std::string_view name_() { return scan_name(s_); }
  const Shape* shape() { return shapes_.read(s_); }
  static constexpr int kMaxDepth = 100;
  Module& module_;
  Scanner s_;
  Names<Computation> computations_;
  Names<Instruction> instructions_;
  Names<Instruction>* names_ = nullptr;
  ShapeReader shapes_;
  Computation* computation_ = nullptr;
  std::vector<Fixup> fixups_;
  std::vector<Called> called_;  // computations named by attributes of unfinished instructions
  std::vector<Instruction*> scratch_;
  std::vector<Attribute> attributes_;
  std::vector<int64_t> integers_;
  int depth_ = 0;
  int nested_count_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse_module(std::string_view text, bool verified) {
  auto module = std::make_unique<Module>("");
  Parser(text, module.get()).run();
  if (verified) verify(*module);
  return module;
}

}  // namespace lamella::hlo
