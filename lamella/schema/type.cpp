// Interning of SchemaType nodes. Nodes are never freed: the set of types a program uses is small,
// and signatures of unloaded libraries may still be printed.
#include "lamella/schema/type.h"

#include <array>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "lamella/schema/type_lock.h"

namespace lamella {
namespace detail {

struct TypeNode {
  explicit TypeNode(TypeKind kind_, std::string_view name_ = {}) : kind(kind_), name(name_) {}

  TypeKind kind;
  bool symbolic = false;
  int fixed_size = -1;
  std::string name;
  std::vector<SchemaType> elements;
  const TypeNode* same_as = nullptr;  // the representative of all equal types
  std::string text;

  static SchemaType wrap(const TypeNode* node) { return SchemaType(node); }
  static const TypeNode* of(SchemaType type) { return type.node_; }
};

}  // namespace detail

namespace {

using detail::TypeNode;

struct Word {
  std::string_view text;
  TypeKind kind;
};

// The first word of a kind is the one atom() gives.
constexpr Word kWords[] = {
    {"Tensor", TypeKind::kTensor},
    {"int", TypeKind::kInt},
    {"SymInt", TypeKind::kInt},
    {"DeviceIndex", TypeKind::kInt},
    {"float", TypeKind::kFloat},
    {"SymFloat", TypeKind::kFloat},
    {"bool", TypeKind::kBool},
    {"SymBool", TypeKind::kBool},
    {"complex", TypeKind::kComplex},
    {"str", TypeKind::kStr},
    {"Scalar", TypeKind::kScalar},
    {"number", TypeKind::kScalar},
    {"Generator", TypeKind::kGenerator},
    {"ScalarType", TypeKind::kScalarType},
    {"Layout", TypeKind::kLayout},
    {"Device", TypeKind::kDevice},
    {"MemoryFormat", TypeKind::kMemoryFormat},
    {"Storage", TypeKind::kStorage},
    {"Stream", TypeKind::kStream},
    {"QScheme", TypeKind::kQScheme},
    {"Dimname", TypeKind::kDimname},
    {"Capsule", TypeKind::kCapsule},
    {"PyObject", TypeKind::kPyObject},
    {"Any", TypeKind::kAny},
    {"AnyEnumType", TypeKind::kAnyEnum},
    {"AnyClassType", TypeKind::kAnyClass},
    {"NoneType", TypeKind::kNone},
};

class TypeTable {
 public:
  static TypeTable& get() {
    static TypeTable* table = new TypeTable;  // never destroyed: types outlive static destruction
    return *table;
  }

  std::mutex mutex;

  const TypeNode* intern(TypeNode node) {
    node.text = spell(node);
    std::string same = node.text;
    if (node.symbolic) same = spell_plain(node);
    std::lock_guard<std::mutex> lock(mutex);
    if (auto it = by_text_.find(node.text); it != by_text_.end()) return it->second;
    nodes_.push_back(std::move(node));
    TypeNode* made = &nodes_.back();
    by_text_.emplace(made->text, made);
    auto [it, fresh] = representative_.emplace(same, made);
    made->same_as = it->second;
    return made;
  }

 private:
  static std::string spell(const TypeNode& node) {
    auto text = [&](std::size_t i) -> const std::string& { return node.elements[i].str(); };
    switch (node.kind) {
      case TypeKind::kOptional:
        return text(0) + "?";
      case TypeKind::kList:
        return text(0) + "[" + (node.fixed_size >= 0 ? std::to_string(node.fixed_size) : "") + "]";
      case TypeKind::kDict:
        return "Dict(" + text(0) + ", " + text(1) + ")";
      case TypeKind::kFuture:
        return "Future(" + text(0) + ")";
      case TypeKind::kAwait:
        return "Await(" + text(0) + ")";
      case TypeKind::kRRef:
        return "RRef(" + text(0) + ")";
      case TypeKind::kTuple: {
        std::string out = "(";
        for (std::size_t i = 0; i < node.elements.size(); ++i) {
          if (i) out += ", ";
          out += text(i);
        }
        return out + ")";
      }
      default:
        return node.name;
    }
  }

  // The spelling with every symbolic or renamed atom replaced by the plain one.
  static std::string spell_plain(const TypeNode& node) {
    if (node.elements.empty()) return std::string(plain_word(node.kind));
    TypeNode plain = node;
    for (SchemaType& element : plain.elements) {
      element = TypeNode::wrap(TypeNode::of(element)->same_as);
    }
    return spell(plain);
  }

  static std::string_view plain_word(TypeKind kind) {
    for (const Word& word : kWords) {
      if (word.kind == kind) return word.text;
    }
    return {};
  }

  std::deque<TypeNode> nodes_;
  std::unordered_map<std::string, const TypeNode*> by_text_;
  std::unordered_map<std::string, const TypeNode*> representative_;

  friend std::string_view plain_word_of(TypeKind kind);
};

std::string_view plain_word_of(TypeKind kind) { return TypeTable::plain_word(kind); }

SchemaType make_word(const Word& word) {
  TypeNode node(word.kind, word.text);
  node.symbolic = plain_word_of(word.kind) != word.text;
  // The plain spelling is interned first, so that it is the representative of all equal types.
  if (node.symbolic) SchemaType::atom(word.kind);
  return TypeNode::wrap(TypeTable::get().intern(std::move(node)));
}

SchemaType make_compound(TypeKind kind, std::span<const SchemaType> elements, int fixed_size = -1) {
  TypeNode node(kind);
  node.fixed_size = fixed_size;
  bool symbolic = false;
  std::vector<SchemaType> plain;
  for (SchemaType element : elements) {
    const TypeNode* inner = TypeNode::of(element);
    symbolic = symbolic || inner->same_as != inner;
    plain.push_back(TypeNode::wrap(inner->same_as));
  }
  if (symbolic) make_compound(kind, plain, fixed_size);
  node.symbolic = symbolic;
  node.elements.assign(elements.begin(), elements.end());
  return TypeNode::wrap(TypeTable::get().intern(std::move(node)));
}

}  // namespace

std::mutex& type_table_lock() { return TypeTable::get().mutex; }

SchemaType::SchemaType() {
  static const SchemaType any = atom(TypeKind::kAny);
  node_ = any.node_;
}

SchemaType SchemaType::atom(TypeKind kind) {
  static const auto atoms = [] {
    std::array<const TypeNode*, static_cast<std::size_t>(TypeKind::kTypeVar)> made{};
    for (const Word& word : kWords) {
      auto& slot = made[static_cast<std::size_t>(word.kind)];
      if (slot != nullptr) continue;
      TypeNode node(word.kind, word.text);
      slot = TypeTable::get().intern(std::move(node));
    }
    return made;
  }();
  return SchemaType(atoms.at(static_cast<std::size_t>(kind)));
}

std::optional<SchemaType> SchemaType::from_word(std::string_view text) {
  for (const Word& word : kWords) {
    if (word.text == text) return make_word(word);
  }
  return std::nullopt;
}

SchemaType SchemaType::sym_int() { return *from_word("SymInt"); }

SchemaType SchemaType::type_var(std::string_view name) {
  TypeNode node(TypeKind::kTypeVar, name);
  return SchemaType(TypeTable::get().intern(std::move(node)));
}

SchemaType SchemaType::custom_class(std::string_view name) {
  TypeNode node(TypeKind::kCustomClass, name);
  return SchemaType(TypeTable::get().intern(std::move(node)));
}

SchemaType SchemaType::optional_of(SchemaType element) {
  return make_compound(TypeKind::kOptional, {&element, 1});
}

SchemaType SchemaType::list_of(SchemaType element, std::optional<int> fixed_size) {
  return make_compound(TypeKind::kList, {&element, 1}, fixed_size.value_or(-1));
}

SchemaType SchemaType::dict_of(SchemaType key, SchemaType value) {
  const SchemaType both[] = {key, value};
  return make_compound(TypeKind::kDict, both);
}

SchemaType SchemaType::tuple_of(std::span<const SchemaType> elements) {
  return make_compound(TypeKind::kTuple, elements);
}

SchemaType SchemaType::wrapper_of(TypeKind kind, SchemaType element) {
  return make_compound(kind, {&element, 1});
}

TypeKind SchemaType::kind() const { return node_->kind; }

bool SchemaType::is_symbolic() const { return node_->symbolic; }

SchemaType SchemaType::element() const {
  return node_->elements.empty() ? SchemaType() : node_->elements.back();
}

std::span<const SchemaType> SchemaType::elements() const { return node_->elements; }

std::optional<int> SchemaType::fixed_size() const {
  return node_->fixed_size >= 0 ? std::optional<int>(node_->fixed_size) : std::nullopt;
}

SchemaType SchemaType::base() const {
  SchemaType type = *this;
  while (type.is_optional() || type.is_list()) type = type.element();
  return type;
}

std::string_view SchemaType::name() const { return node_->name; }

const std::string& SchemaType::str() const { return node_->text; }

bool operator==(SchemaType a, SchemaType b) { return a.node_->same_as == b.node_->same_as; }

std::vector<std::string_view> type_words() {
  std::vector<std::string_view> words;
  for (const Word& word : kWords) words.push_back(word.text);
  for (std::string_view word : {"Dict", "Future", "Await", "RRef"}) words.push_back(word);
  return words;
}

}  // namespace lamella
