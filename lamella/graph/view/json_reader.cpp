// Parses modules from JSON.
#include <nlohmann/json.hpp>

#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/hlo/names.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/view/json.h"

namespace lamella::hlo {
namespace {

using Json = nlohmann::ordered_json;

// A JSON value and its path, which errors name.
class At {
 public:
  explicit At(const Json& root) : json_(root) {}

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(str("hlo: json: ", path(), ": expected ", expected, ", got ", shown()));
  }
  At operator[](std::string_view key) const {
    auto found = object().find(key);
    if (found == json_.end()) fail(str("a value for '", key, "'"));
    return At(*found, *this, key);
  }
  bool has(std::string_view key) const { return object().find(key) != json_.end(); }
  At operator[](size_t i) const { return At(json_[i], *this, i); }
  const Json& object() const {
    if (!json_.is_object()) fail("an object");
    return json_;
  }
  size_t size() const {
    if (!json_.is_array()) fail("a list");
    return json_.size();
  }
  size_t size(size_t wanted) const {
    if (size() != wanted) fail(str("a list of ", wanted));
    return wanted;
  }
  template <class F>
  void for_each(F&& f) const {
    for (auto one = object().begin(); one != json_.end(); ++one) {
      f(one.key(), At(one.value(), *this, one.key()));
    }
  }

  int64_t integer() const {
    if (!json_.is_number_integer()) fail("an integer");
    return json_.get<int64_t>();
  }
  bool boolean() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
  }
  bool is_number() const { return json_.is_number(); }
  double number() const {
    if (!json_.is_number()) fail("a number");
    return json_.get<double>();
  }
  std::string text() const {
    if (json_.is_string()) return json_.get<std::string>();
    if (!json_.is_object() || !has("bytes")) fail("a string");
    std::string made;
    At bytes = (*this)["bytes"];
    for (size_t i = 0; i < bytes.size(); ++i) made += static_cast<char>(bytes[i].integer());
    return made;
  }
  std::vector<int64_t> integers() const {
    std::vector<int64_t> made;
    for (size_t i = 0; i < size(); ++i) made.push_back((*this)[i].integer());
    return made;
  }
  // Calls f(text); an error that it throws gets this value's path.
  template <class F>
  auto read(F&& f) const {
    std::string from = text();
    try {
      return f(from);
    } catch (const Error& error) {
      throw Error(str("hlo: json: ", path(), ": ", error.what()));
    }
  }
  Shape shape() const {
    return read([](const std::string& from) { return Shape::parse(from); });
  }

 private:
  At(const Json& json, const At& parent, std::string_view key)
      : json_(json), parent_(&parent), key_(key) {}
  At(const Json& json, const At& parent, size_t index)
      : json_(json), parent_(&parent), index_(index) {}
  std::string path() const {
    if (parent_ == nullptr) return "the module";
    std::string before = parent_->parent_ != nullptr ? parent_->path() : "";
    if (key_.data() == nullptr) return str(before, "[", index_, "]");
    return before.empty() ? std::string(key_) : str(before, ".", key_);
  }
  std::string shown() const {
    std::string text = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
  }

  const Json& json_;
  const At* parent_ = nullptr;
  std::string_view key_;
  size_t index_ = 0;
};

class Reader {
 public:
  explicit Reader(const At& at) : at_(at) {}

  std::unique_ptr<Module> run() {
    if (at_["format"].text() != "lamella.hlo") at_["format"].fail("'lamella.hlo'");
    if (at_["version"].integer() != 1) at_["version"].fail("1");
    module_ = std::make_unique<Module>(name(at_, NameOf::Module));
    header();
    At computations = at_["computations"];
    // All computations are made before the first instruction, which may refer to any of them.
    for (size_t i = 0; i < computations.size(); ++i) {
      At one = computations[i];
      Computation* made = module_->add_computation(name(one, NameOf::Computation));
      if (!computations_.insert(made->name, made)) one["name"].fail("a unique name");
      if (one.has("attributes")) made->attributes = arena().copy(one["attributes"].text());
    }
    for (size_t i = 0; i < computations.size(); ++i) {
      body(computations[i], *module_->computations[i]);
    }
    module_->entry = computation(at_["entry"]);
    order_computations(*module_);
    return std::move(module_);
  }

 private:
  Arena& arena() { return module_->arena(); }
  // A computation that was read from text may have a type's name.
  static std::string name(const At& at, NameOf of) {
    const At given = at["name"];
    std::string text = given.text();
    const bool fits = name_in_text(text, of) == text;
    if (!fits && (of != NameOf::Computation || !is_type_name(text))) given.fail("a name of HLO");
    return text;
  }
  const Shape* intern(const At& at) { return module_->intern(at.shape()); }
  Computation* computation(const At& at) {
    Computation* found = computations_.find(at.text());
    if (found == nullptr) at.fail("the name of a computation");
    return found;
  }
  Instruction* instruction(const At& at) {
    Instruction* found = instructions_.find(at.text());
    if (found == nullptr) at.fail("the name of an instruction before it");
    return found;
  }

  void header() {
    if (at_.has("is_scheduled")) module_->is_scheduled = at_["is_scheduled"].boolean();
    if (at_.has("entry_layout")) {
      At layout = at_["entry_layout"], parameters = layout["parameters"];
      for (size_t i = 0; i < parameters.size(); ++i) {
        module_->entry_parameter_layouts.push_back(intern(parameters[i]));
      }
      module_->entry_result_layout = intern(layout["result"]);
    }
    if (at_.has("input_output_alias")) {
      At aliases = at_["input_output_alias"];
      for (size_t i = 0; i < aliases.size(); ++i) {
        At one = aliases[i];
        std::string kind = one["kind"].text();
        if (kind != "may-alias" && kind != "must-alias") {
          one["kind"].fail("'may-alias' or 'must-alias'");
        }
        module_->input_output_aliases.push_back(
            {one["output"].integers(), one["parameter"].integer(),
             one["parameter_index"].integers(), kind == "must-alias"});
      }
    }
    if (at_.has("attributes")) {
      At attributes = at_["attributes"];
      for (size_t i = 0; i < attributes.size(); ++i) {
        At pair = attributes[i];
        pair.size(2);
        module_->attributes.emplace_back(arena().copy(pair[size_t{0}].text()),
                                         arena().copy(pair[size_t{1}].text()));
      }
    }
  }

  void body(const At& at, Computation& made) {
    instructions_.clear();
    At list = at["instructions"];
    if (list.size() == 0) list.fail("instructions");
    for (size_t i = 0; i < list.size(); ++i) {
      At one = list[i];
      read_instruction(one, made);
    }
    for (size_t i = 0; i < made.parameters.size(); ++i) {
      if (made.parameters[i] == nullptr) list.fail(str("a parameter of the number ", i));
    }
    made.root = instruction(at["root"]);
  }

  void read_instruction(const At& at, Computation& parent) {
    auto opcode = opcode_from_name(at["opcode"].text());
    if (!opcode) at["opcode"].fail("an opcode");
    std::vector<Instruction*> operands;
    if (at.has("operands")) {
      At names = at["operands"];
      for (size_t i = 0; i < names.size(); ++i) operands.push_back(instruction(names[i]));
    }
    int wanted = opcode_operands(*opcode);
    if (wanted >= 0 && operands.size() != static_cast<size_t>(wanted)) {
      at.fail(str("'", opcode_name(*opcode), "' to have ", wanted, " operands"));
    }
    std::vector<Attribute> attributes;
    if (at.has("attributes")) {
      at["attributes"].for_each([&](const std::string& name, const At& value) {
        auto key = attribute_from_name(name, *opcode);
        if (!key) value.fail(str("an attribute of a known name, not '", name, "'"));
        attributes.push_back(attribute(*key, value));
      });
    }
    std::stable_sort(attributes.begin(), attributes.end(),
                     [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
    Instruction* made = module_->add_instruction(&parent, *opcode, name(at, NameOf::Instruction),
                                                 intern(at["shape"]), operands, attributes);
    if (!instructions_.insert(made->name, made)) at["name"].fail("a unique name");
    if (*opcode == Opcode::Constant) {
      made->literal = at["literal"].read([&](const std::string& from) {
        Scanner scanner(from, "literal");
        Literal literal = Literal::scan(scanner, *made->shape);
        if (!scanner.at_end())
          scanner.fail("expected the end of the literal, got ", scanner.next());
        return arena().make<Literal>(std::move(literal));
      });
    } else if (*opcode == Opcode::Parameter) {
      At number = at["parameter_number"];
      made->parameter_number = number.integer();
      // A computation has no more parameters than instructions.
      if (made->parameter_number < 0 || made->parameter_number > 1'000'000) {
        number.fail("the number of a parameter");
      }
      auto n = static_cast<size_t>(made->parameter_number);
      if (parent.parameters.size() <= n) parent.parameters.resize(n + 1);
      if (parent.parameters[n] != nullptr) number.fail("a unique parameter number");
      parent.parameters[n] = made;
    }
  }

  template <class T, class Kept>  // Kept: T or const T
  void set(Attribute* made, Kept* Attribute::*place, const std::vector<T>& values) {
    std::span<T> kept = arena().copy(std::span<const T>(values));
    made->*place = kept.data();
    made->size = static_cast<uint32_t>(kept.size());
  }
  void set_text(Attribute* made, std::string_view text) {
    std::string_view kept = arena().copy(text);
    made->text_data = kept.data();
    made->size = static_cast<uint32_t>(kept.size());
  }

  Attribute attribute(AttributeKey key, const At& at) {
    Attribute made;
    made.key = key;
    made.integer = 0;
    switch (attribute_kind(key)) {
      case AttributeKind::Integer:
        made.integer = at.integer();
        break;
      case AttributeKind::Boolean:
        made.integer = at.boolean() ? 1 : 0;
        break;
      case AttributeKind::Real:
        if (at.is_number()) {
          made.real = at.number();
          break;
        }
        made.real = at.read([](const std::string& from) {
          Scanner scanner(from, "number");
          return Literal::scan(scanner, Shape::scalar(ElementType::F64)).real_at(0);
        });
        break;
      case AttributeKind::Integers:
        set(&made, &Attribute::integer_data, at.integers());
        break;
      case AttributeKind::Word:
      case AttributeKind::String:
      case AttributeKind::Text:
        set_text(&made, at.text());
        break;
      case AttributeKind::Window: {
        std::vector<WindowDimension> list;
        for (size_t i = 0; i < at.size(); ++i) {
          At d = at[i];
          list.push_back({d["size"].integer(), d["stride"].integer(), d["padding_low"].integer(),
                          d["padding_high"].integer(), d["window_dilation"].integer(),
                          d["base_dilation"].integer(), d["reversal"].boolean()});
        }
        set(&made, &Attribute::window_data, list);
        break;
      }
      case AttributeKind::DimLabels:
        made.convolution = at.read([&](const std::string& from) {
          Scanner scanner(from, "dim_labels");
          return arena().make<ConvolutionDimensions>(scan_dim_labels(scanner));
        });
        break;
      case AttributeKind::Padding: {
        std::vector<PaddingDimension> list;
        for (size_t i = 0; i < at.size(); ++i) {
          At d = at[i];
          list.push_back({d["low"].integer(), d["high"].integer(), d["interior"].integer()});
        }
        set(&made, &Attribute::padding_data, list);
        break;
      }
      case AttributeKind::Slices: {
        std::vector<SliceDimension> list;
        for (size_t i = 0; i < at.size(); ++i) {
          At d = at[i];
          list.push_back({d["start"].integer(), d["limit"].integer(), d["stride"].integer()});
        }
        set(&made, &Attribute::slice_data, list);
        break;
      }
      case AttributeKind::Computation:
        made.computation = computation(at);
        break;
      case AttributeKind::Computations: {
        std::vector<Computation*> list;
        for (size_t i = 0; i < at.size(); ++i) list.push_back(computation(at[i]));
        set(&made, &Attribute::computation_data, list);
        break;
      }
      case AttributeKind::Instructions: {
        std::vector<Instruction*> list;
        for (size_t i = 0; i < at.size(); ++i) list.push_back(instruction(at[i]));
        set(&made, &Attribute::instruction_data, list);
        break;
      }
      case AttributeKind::Shapes: {
        std::vector<const Shape*> list;
        for (size_t i = 0; i < at.size(); ++i) list.push_back(intern(at[i]));
        set(&made, &Attribute::shape_data, list);
        break;
      }
      case AttributeKind::ShapeOf:
        made.shape = intern(at);
        break;
      case AttributeKind::Aliasing: {
        auto* list = arena().make<std::vector<OperandAlias>>();
        for (size_t i = 0; i < at.size(); ++i) {
          At one = at[i];
          list->push_back({one["output"].integers(), one["operand"].integer(),
                           one["operand_index"].integers()});
        }
        made.alias_data = list->data();
        made.size = static_cast<uint32_t>(list->size());
        break;
      }
    }
    return made;
  }

  const At& at_;
  std::unique_ptr<Module> module_;
  Names<Computation> computations_;
  Names<Instruction> instructions_;
};

}  // namespace

std::unique_ptr<Module> from_json(std::string_view text, bool verify_it) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception& error) {
    // The library's message has the position and the problem after a number in brackets.
    std::string_view what = error.what();
    size_t end = what.find("] ");
    throw Error(str("hlo: json: ", end == std::string_view::npos ? what : what.substr(end + 2)));
  }
  At at(root);
  std::unique_ptr<Module> module = Reader(at).run();
  if (verify_it) verify(*module);
  return module;
}

}  // namespace lamella::hlo
