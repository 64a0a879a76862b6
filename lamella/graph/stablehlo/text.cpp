// Reading StableHLO's text: MLIR's generic form of operations, and the forms that StableHLO prints.
//
// Note [Forms of operations]
//   Nearly all printed forms are operands, "name = value" pairs, words and a dictionary, and behind
//   a colon types. They are read alike: kForms says which attribute a name stands for. The types
//   give the results, those of operands are known. Forms with a grammar of their own have a
//   function.
#include <algorithm>
#include <charconv>

#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/stablehlo/text_forms.h"
#include "lamella/graph/stablehlo/text_reader.h"

namespace lamella::hlo::stablehlo {
namespace {

class Reader {
 public:
  Reader(std::string_view text, Arena& arena)
      : source_{text, true}, in_(text, arena), s_(in_.s), arena_(arena) {}

  Program run() {
    Program program{source_, nullptr};
    auto* top = arena_.make<Operation>();
    top->name = "module";
    top->regions.emplace_back().blocks.push_back(arena_.make<Block>());
    while (!s_.at_end()) {
      if (s_.peek() == '#') {
        in_.alias();
        continue;
      }
      if (s_.peek() == '!') s_.fail("expected an operation, got the name of a type");
      if (s_.take("{-#")) {  // resources, which no operation of ours refers to
        const size_t end = source_.data.find("#-}", s_.position());
        if (end == std::string_view::npos) s_.fail("expected '#-}' to end the resources");
        s_.seek(end + 3);
        continue;
      }
      Operation* one = operation();
      if (one->name == "module" && program.root == nullptr) program.root = one;
      top->regions[0].blocks[0]->operations.push_back(one);
    }
    // Functions may stand at the top, without a module around them.
    if (program.root == nullptr) program.root = top;
    return program;
  }

 private:
  // ---- Values ----

  std::string_view value_name() {
    s_.expect('%');
    std::string_view name = in_.word();
    if (name.empty()) s_.fail("expected the name of a value, got ", s_.next());
    return name;
  }
  Value* value() {
    s_.skip();
    const size_t begin = s_.position();
    std::string_view name = value_name();
    size_t part = 0;
    if (s_.at('#')) {
      s_.seek(s_.position() + 1);
      part = static_cast<size_t>(s_.integer());
    }
    auto found = values_.find(name);
    if (found == values_.end() || part >= found->second.size()) {
      s_.fail_at(begin, str("expected a value that is defined above, got '", s_.from(begin), "'"));
    }
    return found->second[part];
  }
  void define(std::string_view name, std::vector<Value*> parts) {
    auto& slot = values_[name];
    hidden_.emplace_back(name, std::move(slot));
    slot = std::move(parts);
  }
  Value* made(const Type* type) {
    auto* one = arena_.make<Value>();
    one->type = type;
    return one;
  }
  // Restores what names meant before a region.
  void leave(size_t hidden) {
    while (hidden_.size() > hidden) {
      auto& [name, before] = hidden_.back();
      if (before.empty()) {
        values_.erase(name);
      } else {
        values_[name] = std::move(before);
      }
      hidden_.pop_back();
    }
  }

  // ---- Operations ----

  Operation* operation() {
    auto* op = arena_.make<Operation>();
    std::vector<std::pair<std::string_view, size_t>> names;
    if (s_.peek() == '%') {
      do {
        std::string_view name = value_name();
        const int64_t count = s_.take(':') ? s_.integer() : 1;
        if (count < 1 || count > (1 << 16)) s_.fail("expected a number of results, got ", count);
        names.emplace_back(name, static_cast<size_t>(count));
      } while (s_.take(','));
      s_.expect('=');
    }
    size_t results = 0;
    for (const auto& [name, count] : names) results += count;
    s_.skip();
    op->position = s_.position();
    if (s_.at('"')) {
      op->name = local_name(in_.quoted());
      generic(op);
    } else {
      std::string_view name = in_.word();
      if (name.empty()) s_.fail("expected an operation, got ", s_.next());
      op->name = local_name(name);
      pretty(op, results);
    }
    in_.location();
    if (op->results.size() != results && !names.empty()) {
      source_.fail(op->position, "expected ", results, " results of '", op->name, "', got ",
                   op->results.size());
    }
    size_t next = 0;
    for (const auto& [name, count] : names) {
      define(name, {op->results.begin() + static_cast<ptrdiff_t>(next),
                    op->results.begin() + static_cast<ptrdiff_t>(next + count)});
      next += count;
    }
    spread(op);
    return op;
  }
  std::string_view local_name(std::string_view name) {
    if (!std::ranges::all_of(name, Scanner::is_word)) {
      source_.fail(s_.position(), "expected the name of an operation, got ", quoted(name));
    }
    for (std::string_view dialect : {"stablehlo.", "func.", "builtin.", "chlo."}) {
      if (!name.starts_with(dialect)) continue;
      return dialect == "chlo." ? name : name.substr(dialect.size());
    }
    if (name == "module" || name == "return" || name == "call") return name;
    source_.fail(s_.position(), "expected an operation of stablehlo, chlo or func, got '", name,
                 "'");
  }

  // Structures become their parts.
  void spread(Operation* op) {
    std::vector<Named> all;
    for (const Named& one : op->attributes) {
      const bool is_structure = one.value->kind == Attribute::Kind::Dictionary &&
                                std::ranges::find(kStructures, one.name) != std::end(kStructures);
      if (!is_structure) {
        all.push_back(one);
        continue;
      }
      for (const Named& part : one.value->entries) {
        std::string_view name = part.name;
        if (one.name == "channel_handle") name = name == "handle" ? "channel_id" : "channel_type";
        all.push_back({name, part.value});
      }
    }
    op->attributes = std::move(all);
    for (const Form& form : kOmitted) {
      if (form.operation != op->name || op->find(form.attribute) != nullptr) continue;
      op->attributes.push_back(
          {form.attribute, form.printed == "list" ? in_.list({}) : in_.integer(0)});
    }
  }

  // "name"(%a, %b) <{properties}> ({regions}) {attributes} : (types) -> types
  void generic(Operation* op) {
    s_.expect('(');
    operand_list(op, ')');
    if (s_.take('<')) {
      in_.dictionary(op->attributes);
      s_.expect('>');
    }
    if (s_.take('(')) {
      while (!s_.take(')')) {
        region(op, {});
        if (s_.peek() != ')') s_.expect(',');
      }
    }
    if (s_.peek() == '{') in_.dictionary(op->attributes);
    s_.expect(':');
    types(op, SIZE_MAX);
  }
  void operand_list(Operation* op, char end) {
    while (!s_.take(end)) {
      op->operands.push_back(value());
      if (s_.peek() != end) s_.expect(',');
    }
  }
  // Behind the colon. Without an arrow the types are those of the results, or the last is.
  void types(Operation* op, size_t results) {
    std::vector<const Type*> before, after;
    bool has_arrow = false;
    const size_t begin = s_.position();
    in_.types(before, after, &has_arrow);
    if (!has_arrow && before.size() == 1 && before[0]->kind == Type::Kind::Function) {
      after = before[0]->results;
      has_arrow = true;
    }
    if (!has_arrow && before.size() >= results) {
      after.assign(before.end() - static_cast<ptrdiff_t>(results), before.end());
    } else if (!has_arrow) {
      s_.fail_at(begin, "expected the types of the results");
    }
    for (const Type* one : after) op->results.push_back(made(one));
  }

  // A region in braces. `arguments` are those that the form names before it.
  void region(Operation* op, const std::vector<std::pair<std::string_view, Value*>>& arguments) {
    if (++depth_ > kMostNested) s_.fail("expected at most ", kMostNested, " nested regions");
    const size_t hidden = hidden_.size();
    // A place of its own: the operation's regions may move meanwhile.
    auto* block = arena_.make<Block>();
    for (const auto& [name, one] : arguments) {
      define(name, {one});
      block->arguments.push_back(one);
    }
    s_.expect('{');
    if (s_.take('^')) {
      in_.word();
      if (s_.take('(')) {
        while (!s_.take(')')) {
          std::string_view name = value_name();
          s_.expect(':');
          Value* one = made(in_.type());
          in_.location();
          define(name, {one});
          block->arguments.push_back(one);
          if (s_.peek() != ')') s_.expect(',');
        }
      }
      s_.expect(':');
    }
    while (!s_.take('}')) {
      if (s_.peek() == '^') s_.fail("expected regions of one block, got a second");
      block->operations.push_back(operation());
    }
    op->regions.emplace_back().blocks.push_back(block);
    leave(hidden);
    --depth_;
  }

  // ---- Printed forms ----

  void add(Operation* op, std::string_view name, const Attribute* value) {
    op->attributes.push_back({name, value});
  }
  void pretty(Operation* op, size_t results) {
    if (op->name == "module") return module(op);
    if (op->name == "func") return function(op);
    if (op->name == "constant") return constant(op);
    if (op->name == "while") return loop(op);
    if (op->name == "reduce") return reduce(op);
    std::string_view name = op->name;
    if (name == "custom_call" || name == "call") {
      add(op, name == "call" ? "callee" : "call_target_name",
          in_.text_attribute(Attribute::Kind::Symbol, in_.symbol()));
    } else if (name == "composite") {
      add(op, "name", in_.text_attribute(Attribute::Kind::String, in_.quoted()));
    } else if (name == "compare") {
      word(op, "comparison_direction");
      s_.expect(',');
    }
    while (s_.peek() != ':' && part(op)) {
    }
    if (s_.take(':')) types(op, results);
  }
  void word(Operation* op, std::string_view name) {
    std::string_view text = in_.word();
    if (text.empty()) s_.fail("expected a word, got ", s_.next());
    add(op, name, in_.text_attribute(Attribute::Kind::Word, text));
  }
  // One part of a form; false at its end, where no types follow.
  bool part(Operation* op) {
    switch (s_.peek()) {
      case '%':
        op->operands.push_back(value());
        if (s_.peek() == '[') brackets(op);
        return true;
      case ',':
      case '(':
      case ')':
        s_.take(s_.peek());
        return true;
      case '{':
        in_.dictionary(op->attributes);
        return true;
      default:
        break;
    }
    s_.skip();
    const size_t begin = s_.position();
    std::string_view name = in_.word();
    if (s_.take('=')) {
      named(op, name);
      return true;
    }
    if (op->name == "compare" && !name.empty()) {
      add(op, "compare_type", in_.text_attribute(Attribute::Kind::Word, name));
      return true;
    }
    s_.seek(begin);
    if (op->name == "return" || op->name == "optimization_barrier" || op->name == "while") {
      return false;
    }
    s_.fail("expected the types of '", op->name, "', got ", s_.next());
  }
  void named(Operation* op, std::string_view name) {
    if (name == "contracting_dims" || name == "batching_dims") {
      const bool contracts = name == "contracting_dims";
      add(op, contracts ? "lhs_contracting_dimensions" : "lhs_batching_dimensions",
          in_.attribute());
      s_.expect('x');
      return add(op, contracts ? "rhs_contracting_dimensions" : "rhs_batching_dimensions",
                 in_.attribute());
    }
    if (name == "dim_numbers") return in_.convolution_dimensions(op->attributes);
    if (name == "window" && op->name == "convolution") return window(op);
    if (name == "format") {  // e5m10
      std::string_view text = in_.word();
      int64_t exponent = 0, mantissa = 0;
      const size_t middle = text.find('m');
      auto number = [&](std::string_view digits, int64_t* into) {
        auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *into);
        return error == std::errc() && end == digits.data() + digits.size();
      };
      if (!text.starts_with('e') || middle == std::string_view::npos ||
          !number(text.substr(1, middle - 1), &exponent) ||
          !number(text.substr(middle + 1), &mantissa)) {
        s_.fail("expected a format such as e5m10, got '", text, "'");
      }
      add(op, "exponent_bits", in_.integer(exponent));
      return add(op, "mantissa_bits", in_.integer(mantissa));
    }
    for (const Form& form : kForms) {
      if (form.operation == op->name && form.printed == name) name = form.attribute;
    }
    // The colon behind a number is that of the operation's types.
    const char next = s_.peek();
    const bool is_number = next == '-' || (next >= '0' && next <= '9');
    add(op, name, is_number ? in_.integer(s_.integer()) : in_.attribute());
  }
  // Behind an operand: [0:4, 1:5:2] of a slice, [1] of an element of a tuple.
  void brackets(Operation* op) {
    s_.expect('[');
    if (op->name != "slice") {
      add(op, "index", in_.integer(s_.integer()));
      return s_.expect(']');
    }
    std::vector<int64_t> starts, limits, strides;
    while (!s_.take(']')) {
      starts.push_back(s_.integer());
      s_.expect(':');
      limits.push_back(s_.integer());
      strides.push_back(s_.take(':') ? s_.integer() : 1);
      if (s_.peek() != ']') s_.expect(',');
    }
    add(op, "start_indices", in_.integers(starts));
    add(op, "limit_indices", in_.integers(limits));
    add(op, "strides", in_.integers(strides));
  }
  // {stride = [2, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], ...}
  void window(Operation* op) {
    static constexpr Form kParts[] = {{"", "stride", "window_strides"},
                                      {"", "pad", "padding"},
                                      {"", "lhs_dilate", "lhs_dilation"},
                                      {"", "rhs_dilate", "rhs_dilation"},
                                      {"", "reverse", "window_reversal"}};
    std::vector<Named> parts;
    in_.dictionary(parts);
    for (const Named& one : parts) {
      auto found = std::ranges::find(kParts, one.name, &Form::printed);
      if (found == std::end(kParts)) s_.fail("expected a part of a window, got '", one.name, "'");
      add(op, found->attribute, one.value);
    }
  }

  void module(Operation* op) {
    if (s_.peek() == '@')
      add(op, "sym_name", in_.text_attribute(Attribute::Kind::String, in_.symbol()));
    if (in_.take_word("attributes")) in_.dictionary(op->attributes);
    region(op, {});
  }

  // func @f(%a: type {attributes}, ...) -> (type {attributes}, ...) attributes {...} { ... }
  void function(Operation* op) {
    if (in_.at_word("private") || in_.at_word("public") || in_.at_word("nested")) in_.word();
    add(op, "sym_name", in_.text_attribute(Attribute::Kind::String, in_.symbol()));
    auto* type = arena_.make<Type>();
    type->kind = Type::Kind::Function;
    std::vector<const Attribute*> of_arguments, of_results;
    std::vector<std::pair<std::string_view, Value*>> arguments;
    auto attributes = [&](std::vector<const Attribute*>& into) {
      auto* all = arena_.make<Attribute>();
      all->kind = Attribute::Kind::Dictionary;
      if (s_.peek() == '{') in_.dictionary(all->entries);
      into.push_back(all);
      in_.location();
    };
    s_.expect('(');
    while (!s_.take(')')) {
      std::string_view name;
      if (s_.peek() == '%') {
        name = value_name();
        s_.expect(':');
      }
      type->parts.push_back(in_.type());
      arguments.emplace_back(name, made(type->parts.back()));
      attributes(of_arguments);
      if (s_.peek() != ')') s_.expect(',');
    }
    if (s_.take("->")) {
      if (s_.take('(')) {
        while (!s_.take(')')) {
          type->results.push_back(in_.type());
          attributes(of_results);
          if (s_.peek() != ')') s_.expect(',');
        }
      } else {
        type->results.push_back(in_.type());
      }
    }
    if (in_.take_word("attributes")) in_.dictionary(op->attributes);
    auto* function_type = arena_.make<Attribute>();
    function_type->kind = Attribute::Kind::TypeOf;
    function_type->type = type;
    add(op, "function_type", function_type);
    add(op, "arg_attrs", in_.list(of_arguments));
    add(op, "res_attrs", in_.list(of_results));
    if (s_.peek() == '{') region(op, arguments);  // a declaration has none
  }

  // constant {attributes} dense<...> : type, where the type belongs to the elements.
  void constant(Operation* op) {
    if (s_.take('(')) {
      s_.expect(')');
      if (s_.take('<')) {
        in_.dictionary(op->attributes);
        s_.expect('>');
      }
      if (s_.peek() == '{') in_.dictionary(op->attributes);
      s_.expect(':');
      return types(op, 1);
    }
    if (s_.peek() == '{') in_.dictionary(op->attributes);
    const Attribute* value = in_.attribute();
    if (value->type == nullptr) s_.fail("expected elements and their type");
    add(op, "value", value);
    op->results.push_back(made(value->type));
  }

  // while(%a = %x, ...) : types attributes {...} cond { ... } do { ... }
  void loop(Operation* op) {
    std::vector<std::string_view> names;
    s_.expect('(');
    while (!s_.take(')')) {
      names.push_back(value_name());
      s_.expect('=');
      op->operands.push_back(value());
      if (s_.peek() != ')') s_.expect(',');
    }
    if (s_.take(':')) {
      do {
        op->results.push_back(made(in_.type()));
      } while (s_.take(','));
    }
    if (op->results.size() != names.size())
      s_.fail("expected a type for each value that is carried");
    if (in_.take_word("attributes")) in_.dictionary(op->attributes);
    for (const char* part : {"cond", "do"}) {
      if (!in_.take_word(part)) s_.fail("expected '", part, "', got ", s_.next());
      std::vector<std::pair<std::string_view, Value*>> arguments;
      for (size_t i = 0; i < names.size(); ++i) {
        arguments.emplace_back(names[i], made(op->results[i]->type));
      }
      region(op, arguments);
    }
  }

  // reduce(%a init: %b), (%c init: %d) applies stablehlo.add across dimensions = [0] : types, or
  // without "applies" and with reducer(%a: type, %b: type) (...) { ... } behind the types.
  void reduce(Operation* op) {
    std::vector<Value*> initial;
    do {
      s_.expect('(');
      op->operands.push_back(value());
      s_.expect("init:");
      initial.push_back(value());
      s_.expect(')');
    } while (s_.take(','));
    const size_t count = initial.size();
    op->operands.insert(op->operands.end(), initial.begin(), initial.end());
    std::string_view applied;
    if (in_.take_word("applies")) applied = local_name(in_.word());
    if (!in_.take_word("across")) s_.fail("expected 'across', got ", s_.next());
    in_.take_word("dimensions");
    s_.expect('=');
    add(op, "dimensions", in_.attribute());
    if (s_.peek() == '{') in_.dictionary(op->attributes);
    s_.expect(':');
    types(op, count);
    if (!applied.empty()) return reducer_of(op, applied);
    if (!in_.take_word("reducer")) s_.fail("expected 'reducer', got ", s_.next());
    std::vector<std::pair<std::string_view, Value*>> left, right;
    for (size_t i = 0; i < count; ++i) {
      s_.expect('(');
      for (auto* side : {&left, &right}) {
        if (side == &right) s_.expect(',');
        std::string_view name = value_name();
        s_.expect(':');
        side->emplace_back(name, made(in_.type()));
        in_.location();
      }
      s_.expect(')');
    }
    left.insert(left.end(), right.begin(), right.end());
    region(op, left);
  }
  // A region that applies one operation to two scalars.
  void reducer_of(Operation* op, std::string_view name) {
    auto* block = arena_.make<Block>();
    auto* type = arena_.make<Type>(*op->operands[0]->type);
    if (!op->results.empty()) type->element = op->results[0]->type->element;
    type->kind = Type::Kind::Tensor;
    type->sizes.clear();
    type->bounds.clear();
    block->arguments = {made(type), made(type)};
    auto* inner = arena_.make<Operation>();
    inner->name = name;
    inner->position = op->position;
    inner->operands = block->arguments;
    inner->results = {made(type)};
    auto* last = arena_.make<Operation>();
    last->name = "return";
    last->position = op->position;
    last->operands = inner->results;
    block->operations = {inner, last};
    op->regions.emplace_back().blocks.push_back(block);
  }

  Source source_;
  TextReader in_;
  Scanner& s_;
  Arena& arena_;
  std::unordered_map<std::string_view, std::vector<Value*>> values_;
  std::vector<std::pair<std::string_view, std::vector<Value*>>> hidden_;
  int depth_ = 0;
};

}  // namespace

Program read_text(std::string_view data, Arena& arena) { return Reader(data, arena).run(); }

}  // namespace lamella::hlo::stablehlo
