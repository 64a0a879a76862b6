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
#include "lamella/graph/hlo/attribute_use.h"
#include "lamella/graph/hlo/infer.h"
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
    if (instruction_follows(s_)) {
      module_.name = "_";
      module_.is_scheduled = true;
      one_instruction();
    } else {
      if (at_word(s_, "HloModule") || !computation_follows(s_)) scan_header(s_, shapes_, &module_);
      while (!s_.at_end()) computation();
      if (computations_in_order_.empty()) s_.fail("expected a computation, got the end");
      if (module_.entry == nullptr) module_.entry = computations_in_order_.back();
      std::string title = str("module_", module_.entry->name);
      if (module_.name.empty()) module_.name = module_.arena().copy(title);
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
    require_own_computations(module_);
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

  // The operands of a single instruction state their shapes, and become parameters.
  void one_instruction() {
    Computation* made = module_.add_computation("_");
    computations_.insert(made->name, made);
    module_.entry = made;
    names_ = &instructions_;
    single_ = made;
    if (shape_follows(s_)) {
      right_side(made, "_", s_.position());
    } else {
      instruction(made);
    }
    if (!s_.at_end()) s_.fail("expected the end of the instruction, got ", s_.next());
    made->root = made->instructions.back();
    require_parameters_of(*made, 0);
  }

  void computation() {
    s_.skip();
    size_t begin = s_.position();
    bool entry = at_word(s_, "ENTRY");
    if (entry) {
      s_.word();
      s_.skip();
      begin = s_.position();
    }
    std::string_view name = scan_computation_name(s_);
    if (name.empty()) s_.fail("expected a computation, got ", s_.next());
    const Shape* stated = nullptr;
    size_t stated_at = 0;
    if (s_.take('(')) {  // (a: f32[2], b: s32[]) -> f32[2]
      while (!s_.take(')')) {
        if (name_().empty()) s_.fail("expected the name of a parameter, got ", s_.next());
        shape();
        if (s_.peek() != ')') s_.expect(',');
      }
      s_.expect("->");
      s_.skip();
      stated_at = s_.position();
      stated = shape();
    }
    Computation* made = module_.add_computation(name);
    if (!computations_.insert(name, made)) {
      s_.fail_at(begin, str("expected computations of different names, got '", name, "' again"));
    }
    computations_in_order_.push_back(made);
    body(made, instructions_);
    instructions_.clear();
    if (stated != nullptr && !stated->compatible(*made->root->shape)) {
      s_.fail_at(stated_at,
                 str("expected the shape of '", made->root->name, "', ",
                     made->root->shape->to_string(false), ", got ", stated->to_string(false)));
    }
    if (s_.take(',')) {
      s_.skip();
      size_t from = s_.position();
      s_.expect("execution_thread");
      s_.expect('=');
      scan_quoted(s_, module_.arena());
      made->attributes = s_.from(from);
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
    open_.push_back(made);
    s_.expect('{');
    size_t open = s_.position();
    while (!s_.take('}')) {
      if (s_.position() >= s_.text().size()) {
        s_.fail_at(open, str("expected '}' to end computation '", made->name, "', got the end"));
      }
      instruction(made);
    }
    if (made->instructions.empty()) {
      s_.fail_at(open, str("expected computation '", made->name, "' to have an instruction"));
    }
    if (made->root == nullptr) made->root = made->instructions.back();
    require_parameters_of(*made, open);
    names_ = outer;
    open_.pop_back();
  }

  void require_parameters_of(const Computation& made, size_t at) {
    for (size_t i = 0; i < made.parameters.size(); ++i) {
      if (made.parameters[i] == nullptr) {
        s_.fail_at(at, str("expected computation '", made.name, "' to have parameter(", i,
                           "), as it has ", made.parameters.size() - 1, ", got none"));
      }
    }
  }

  void instruction(Computation* made) {
    s_.skip();
    size_t begin = s_.position();
    bool root = at_word(s_, "ROOT");
    if (root) {
      s_.word();
      s_.skip();
      begin = s_.position();
    }
    std::string_view name = scan_computation_name(s_);  // types get their own error
    if (name.empty()) s_.fail("expected an instruction, got ", s_.next());
    if (is_type_name(name) || (name.starts_with("__") && !name.starts_with("__xla_"))) {
      s_.fail_at(begin, str("expected a name that is no type and does not begin with '__', got '",
                            name, "'"));
    }
    s_.expect('=');
    Instruction* one = right_side(made, name, begin);
    if (root) {
      if (made->root != nullptr) {
        s_.fail_at(begin, str("expected one instruction marked ROOT in computation '", made->name,
                              "', got a second"));
      }
      made->root = one;
    }
  }

  // "[shape] opcode(operands), attributes". An operand that is an instruction itself has no name
  // and no attributes.
  Instruction* right_side(Computation* made, std::string_view name, size_t begin,
                          bool is_operand = false) {
    s_.skip();
    size_t shape_at = s_.position();
    const Shape* result = shape_follows(s_) ? shape() : nullptr;
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
      s_.fail("expected ", result == nullptr ? "a shape" : "an opcode", ", got ", s_.next());
    }
    if (result == nullptr && (pair || !can_infer_shape(*opcode))) {
      s_.fail_at(shape_at, str("expected a shape, got '", word, "'"));
    }
    size_t unresolved = called_.size() + fixups_.size();
    auto* one = module_.arena().make<Instruction>();
    one->opcode = *opcode;
    one->name = name;
    one->shape = result;
    one->parent = made;
    if (*opcode == Opcode::Constant) {
      s_.expect('(');
      one->literal = module_.arena().make<Literal>(Literal::scan(s_, *result));
      s_.expect(')');
    } else if (*opcode == Opcode::Parameter) {
      s_.expect('(');
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
    if (!is_operand) attributes(one, pair);
    if (result == nullptr) {
      if (called_.size() + fixups_.size() > unresolved) {
        s_.fail_at(shape_at, str("expected a shape, as '", word, "' names a computation below"));
      }
      one->shape = module_.intern(infer_missing_shape(*one));
    }
    if (pair) {
      asynchronous(one, *pair, opcode_at);
    } else {
      require_attributes(*one);
      require_chain(*one, std::nullopt);
    }
    if (is_operand) {
      std::string free = str(word, ".anon");
      for (int64_t n = 1; names_->find(free) != nullptr; ++n) free = str(word, ".anon.", n);
      one->name = module_.arena().copy(free);
    }
    if (!names_->insert(one->name, one)) {
      s_.fail_at(begin, str("expected instructions of different names, got '", name, "' again"));
    }
    one->index = static_cast<int64_t>(made->instructions.size());
    made->instructions.push_back(one);
    return one;
  }
  void asynchronous(Instruction* one, const ShortPair& pair, size_t at) {
    if (pair.opcode == Opcode::AsyncStart &&
        (!one->shape->is_tuple() || one->shape->tuple_shapes().size() < 2)) {
      s_.fail_at(at, str("expected the start of a pair to give its operands and its result, got ",
                         one->shape->to_string(false)));
    }
    one->opcode = pair.opcode;
    require_chain(*one, pair.wrapped);
    if (pair.opcode != Opcode::AsyncStart) return;
    one->opcode = pair.wrapped;
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
    std::vector<Instruction*> outer = std::move(scratch_);
    scratch_.clear();
    s_.expect('(');
    while (!s_.take(')')) {
      scratch_.push_back(operand(one->parent));
      if (s_.peek() != ')') s_.expect(',');
    }
    one->operands = module_.arena().copy(std::span<Instruction* const>(scratch_));
    scratch_ = std::move(outer);
  }
  Instruction* operand(Computation* made) {
    s_.skip();
    size_t begin = s_.position();
    const Shape* stated =
        shape_follows(s_) ? shape() : nullptr;  // the operand's shape may precede it
    s_.skip();
    size_t at = s_.position();
    std::string_view name = name_();
    if (s_.peek() == '(' && !name.empty()) {  // an instruction in place of a name
      if (++depth_ > kMaxDepth) s_.fail("expected at most ", kMaxDepth, " nested instructions");
      s_.seek(begin);
      Instruction* nested = right_side(made, name, begin, true);
      --depth_;
      return nested;
    }
    Instruction* found = name.empty() ? nullptr : names_->find(name);
    if (found == nullptr && stated != nullptr && made == single_) {
      return missing_operand(made, name, stated);
    }
    if (found == nullptr) {
      if (name.empty()) s_.fail("expected an operand, got ", s_.next());
      s_.fail_at(at, str("expected the name of an instruction above, got '", name, "'"));
    }
    if (stated != nullptr && !stated->compatible(*found->shape)) {
      s_.fail_at(begin, str("expected the shape of '", name, "', ", found->shape->to_string(false),
                            ", got ", stated->to_string(false)));
    }
    return found;
  }
  // The operand of a single instruction, as a parameter.
  Instruction* missing_operand(Computation* made, std::string_view name, const Shape* stated) {
    auto number = static_cast<int64_t>(made->parameters.size());
    if (name.empty()) name = module_.arena().copy(str("_", number));
    Instruction* parameter = module_.add_instruction(made, Opcode::Parameter, name, stated, {});
    parameter->parameter_number = number;
    made->parameters.push_back(parameter);
    names_->insert(parameter->name, parameter);
    return parameter;
  }

  // ---- Attributes ----

  void attributes(Instruction* one, const std::optional<ShortPair>& pair) {
    attributes_.clear();
    // The start of a short pair has the attributes of the operation that it wraps, and its own.
    bool is_link = pair && pair->opcode != Opcode::AsyncStart;
    size_t first_called = called_.size();
    while (s_.take(',')) {
      s_.skip();
      size_t at = s_.position();
      std::string_view word = s_.word();
      auto key = attribute_from_name(word, one->opcode);
      bool is_taken = key && ((pair && is_of_pair(one->opcode, is_link, *key)) ||
                              takes_attribute(is_link ? Opcode::AfterAll : one->opcode, *key));
      if (!is_taken)
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
        scan_text_value(s_, key);
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
          made.computation = finished_computation(named.name);
          if (made.computation == nullptr) {
            called_.push_back({key, named.name, named.position});
          }
        }
        break;
      case AttributeKind::Computations: {
        std::vector<Named> names;
        std::vector<Computation*> found;
        s_.expect('{');
        while (!s_.take('}')) {
          bool nested = s_.peek() == '{';
          found.push_back(nested ? nested_computation(key) : nullptr);
          names.push_back(nested ? Named{} : computation_name());
          if (!nested) found.back() = finished_computation(names.back().name);
          if (s_.peek() != '}') s_.expect(',');
        }
        set_span(&made, &made.computation_data, arena.copy(std::span<Computation* const>(found)));
        for (size_t i = 0; i < names.size(); ++i) {
          if (found[i] != nullptr) continue;
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
        auto* found = arena.make<std::vector<OperandAlias>>(scan_operand_aliases(s_));
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
    std::string_view name = scan_computation_name(s_);
    if (name.empty()) s_.fail("expected the name of a computation, got ", s_.next());
    return {name, at};
  }
  // Null if it is defined below, or encloses the text that names it.
  Computation* finished_computation(std::string_view name) const {
    Computation* found = computations_.find(name);
    return std::ranges::find(open_, found) == open_.end() ? found : nullptr;
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
  std::vector<Computation*> computations_in_order_;  // without those in braces
  Computation* single_ = nullptr;                    // the computation of a text of one instruction
  Names<Instruction> instructions_;
  Names<Instruction>* names_ = nullptr;
  ShapeReader shapes_;
  std::vector<Computation*> open_;  // those that are being parsed
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
