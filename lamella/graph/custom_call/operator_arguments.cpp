// Parses the arguments of operators in three steps: scans words and lists, assigns them to
// arguments, and converts them to values of the arguments' types.
#include "lamella/graph/custom_call/operator_arguments.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/argument_text.h"
#include "lamella/schema/enums.h"
#include "lamella/schema/suggest.h"

namespace lamella::hlo {
namespace {

using Form = OperatorArgument::Form;

// A number as a zero-dimensional tensor that is weak in type promotion.
template <class T>
TensorBase number_tensor(T number) {
  lamella_tensor* made = nullptr;
  lamella::detail::check(lamella_tensor_empty(0, nullptr,
                                              static_cast<uint8_t>(CppTypeToScalarType<T>::value),
                                              static_cast<uint8_t>(DeviceType::CPU), -1, &made));
  *static_cast<T*>(made->data) = number;
  lamella_tensor_set_wrapped_number(made, 1);
  return TensorBase::adopt(made);
}

// Parses one text for one schema.
class Reader {
 public:
  Reader(const FunctionSchema& schema, std::string_view text, size_t operand_count)
      : schema_(schema),
        text_(text),
        operand_count_(operand_count),
        used_(operand_count, false),
        given_(schema.arguments.size()) {}

  std::vector<OperatorArgument> read() {
    items_ = scan_arguments(text_, [&](size_t at, const std::string& what) { fail_at(at, what); });
    bool written_out = false;
    for (const NamedItem& one : items_) written_out = written_out || refers(one.item);
    assign(written_out);
    std::vector<OperatorArgument> made;
    if (written_out || operand_count_ == 0) {
      for (size_t i = 0; i < given_.size(); ++i) made.push_back(value_of(i));
    } else {
      made = with_operands_in_order();
    }
    for (size_t k = 0; k < used_.size(); ++k) {
      LAMELLA_CHECK(used_[k], name(), ": expected each operand to be an argument, got ", k, " of ",
                    operand_count_, " that is unused");
    }
    return made;
  }

 private:
  std::string name() const { return schema_.name.str(); }
  [[noreturn]] void fail_at(size_t at, const std::string& what) const {
    throw Error(str(name(), ": column ", at + 1, " of the arguments: ", what));
  }
  static bool refers(const Item& item) {
    if (item.kind == Item::Kind::Operand) return true;
    return std::any_of(item.elements.begin(), item.elements.end(), refers);
  }

  void assign(bool written_out) {
    bool tensors_stand_apart = !written_out && operand_count_ != 0;
    size_t next = 0;
    for (const NamedItem& one : items_) {
      size_t place = 0;
      if (one.name.empty()) {
        while (next < given_.size() && !schema_.arguments[next].kwarg_only && tensors_stand_apart &&
               schema_.arguments[next].type.holds_tensor()) {
          ++next;
        }
        if (next >= given_.size() || schema_.arguments[next].kwarg_only) {
          fail_at(one.item.at, str("expected no more arguments by position, got ", one.item.text));
        }
        place = next++;
      } else {
        int found = schema_.argument_index(one.name);
        if (found < 0) {
          std::vector<std::string_view> names;
          for (const Argument& argument : schema_.arguments) names.push_back(argument.name);
          fail_at(one.item.at, str("expected the name of an argument, got '", one.name, "'",
                                   did_you_mean(one.name, names)));
        }
        place = static_cast<size_t>(found);
      }
      if (given_[place] != nullptr) {
        fail_at(one.item.at,
                str("expected '", schema_.arguments[place].name, "' once, got it twice"));
      }
      given_[place] = &one.item;
    }
  }

  // The value of an argument: from the text, or its default.
  OperatorArgument value_of(size_t i) {
    const Argument& argument = schema_.arguments[i];
    if (given_[i] != nullptr) return convert(*given_[i], argument.type, argument);
    if (argument.default_value) return default_of(argument);
    bool may_be_absent = argument.type.is_optional() && argument.type.holds_tensor();
    LAMELLA_CHECK(may_be_absent, name(), ": expected argument '", argument.name, "' (",
                  argument.type.str(), "), got none");
    return {};
  }

  std::vector<OperatorArgument> with_operands_in_order() {
    size_t needed = 0, optional = 0, lists = 0;
    for (size_t i = 0; i < given_.size(); ++i) {
      SchemaType type = schema_.arguments[i].type;
      if (given_[i] != nullptr || !type.holds_tensor()) continue;
      if (type.without_optional().is_list()) {
        ++lists;
      } else if (type.is_optional() || schema_.arguments[i].default_value) {
        ++optional;
      } else {
        ++needed;
      }
    }
    if (lists > 1 || (lists == 1 && optional != 0)) {
      throw Error(str(name(), ": expected its tensors to be written out, as in ([%0, %1], None), ",
                      "because several arguments could take any number; got '", text_, "'"));
    }
    LAMELLA_CHECK(needed <= operand_count_ && (lists == 1 || operand_count_ <= needed + optional),
                  name(), ": expected ", lists == 1 ? "at least " : "", needed,
                  lists == 0 && optional != 0 ? str(" to ", needed + optional) : std::string(),
                  " operands, got ", operand_count_);
    size_t spare = operand_count_ - needed;
    int32_t next = 0;
    std::vector<OperatorArgument> made;
    for (size_t i = 0; i < given_.size(); ++i) {
      const Argument& argument = schema_.arguments[i];
      SchemaType type = argument.type;
      if (given_[i] != nullptr || !type.holds_tensor()) {
        made.push_back(value_of(i));
        continue;
      }
      OperatorArgument one;
      if (type.without_optional().is_list()) {
        one.form = Form::Operands;
        for (size_t k = 0; k < spare; ++k) one.operands.push_back(take(next++));
      } else if (!type.is_optional() && !argument.default_value) {
        one = operand(next++);
      } else if (spare != 0) {
        --spare;
        one = operand(next++);
      }
      made.push_back(std::move(one));
    }
    return made;
  }

  int32_t take(int64_t number, size_t at = 0) {
    if (number < 0 || static_cast<size_t>(number) >= operand_count_) {
      fail_at(at, str("expected an operand below ", operand_count_, ", got %", number));
    }
    used_[static_cast<size_t>(number)] = true;
    return static_cast<int32_t>(number);
  }
  OperatorArgument operand(int64_t number, size_t at = 0) {
    OperatorArgument one;
    one.form = Form::Operand;
    one.operands = {take(number, at)};
    return one;
  }

  [[noreturn]] void mismatch(const Item& item, SchemaType type, const Argument& argument,
                             const std::string& hint = {}) const {
    fail_at(item.at, str("expected ", type.str(), " for argument '", argument.name, "', got ",
                         item.text, hint));
  }

  OperatorArgument convert(const Item& item, SchemaType type, const Argument& argument) {
    OperatorArgument made;
    if (item.is_word("None")) {
      if (!type.is_optional()) {
        mismatch(item, type, argument);
      }
      return made;
    }
    type = type.without_optional();
    if (type.is_tensor()) return tensor(item, type, argument);
    if (type.is_list() && type.holds_tensor()) return tensors(item, type, argument);
    made.value = value(item, type, argument);
    return made;
  }
  OperatorArgument tensor(const Item& item, SchemaType type, const Argument& argument) {
    OperatorArgument made;
    switch (item.kind) {
      case Item::Kind::Operand:
        return operand(item.integer, item.at);
      case Item::Kind::Int:
        made.value = number_tensor(item.integer);
        return made;
      case Item::Kind::Real:
        made.value = number_tensor(item.real);
        return made;
      case Item::Kind::Complex:
        made.value = number_tensor(item.number);
        return made;
      default:
        if (item.is_word("True") || item.is_word("False")) {
          made.value = number_tensor(item.is_word("True"));
          return made;
        }
        mismatch(item, type, argument, "; tensors are operands: %0");
    }
  }
  OperatorArgument tensors(const Item& item, SchemaType type, const Argument& argument) {
    if (item.kind != Item::Kind::List || type.element().without_optional().is_list()) {
      mismatch(item, type, argument);
    }
    OperatorArgument made;
    made.form = Form::Operands;
    for (const Item& element : item.elements) {
      if (element.kind == Item::Kind::Operand) {
        made.operands.push_back(take(element.integer, element.at));
      } else if (element.is_word("None") && type.element().is_optional()) {
        made.operands.push_back(-1);
      } else {
        mismatch(element, type.element(), argument, "; tensors are operands: %0");
      }
    }
    return made;
  }

  IValue value(const Item& item, SchemaType type, const Argument& argument) const {
    using Kind = Item::Kind;
    auto number = [&](bool complex_too) -> std::optional<IValue> {
      if (item.kind == Kind::Int) return IValue(item.integer);
      if (item.kind == Kind::Real) return IValue(item.real);
      if (item.kind == Kind::Complex && complex_too) return IValue(item.number);
      return std::nullopt;
    };
    switch (type.kind()) {
      case TypeKind::kBool:
        if (item.is_word("True") || item.is_word("False")) return IValue(item.is_word("True"));
        break;
      case TypeKind::kInt:
        if (item.kind == Kind::Int) return IValue(item.integer);
        if (std::optional<IValue> word = enum_value(item, type)) return *word;
        break;
      case TypeKind::kFloat:
        if (item.kind == Kind::Int) return IValue(static_cast<double>(item.integer));
        if (item.kind == Kind::Real) return IValue(item.real);
        break;
      case TypeKind::kComplex:
        if (item.kind == Kind::Int) return complex<double>(static_cast<double>(item.integer), 0);
        if (item.kind == Kind::Real) return complex<double>(item.real, 0);
        if (item.kind == Kind::Complex) return IValue(item.number);
        break;
      case TypeKind::kScalar:
      case TypeKind::kAny:
        if (std::optional<IValue> found = number(true)) return *found;
        if (item.is_word("True") || item.is_word("False")) return IValue(item.is_word("True"));
        if (item.kind == Kind::String && type.kind() == TypeKind::kAny) return IValue(item.string);
        break;
      case TypeKind::kStr:
        if (item.kind == Kind::String) return IValue(item.string);
        break;
      case TypeKind::kScalarType:
      case TypeKind::kMemoryFormat:
      case TypeKind::kLayout: {
        if (std::optional<IValue> word = enum_value(item, type)) return *word;
        mismatch(item, type, argument, did_you_mean(item.text, enum_words(type.kind())));
      }
      case TypeKind::kDevice: {
        if (item.kind != Kind::Word && item.kind != Kind::String) break;
        if (item.string == "cpu" || item.string == "cpu:0") return IValue(Device(DeviceType::CPU));
        mismatch(item, type, argument, "; modules run on the CPU");
      }
      case TypeKind::kGenerator:
        mismatch(item, type, argument, "; operators in a module draw from the default generator");
      case TypeKind::kList:
        return list(item, type, argument);
      default:
        fail_at(item.at, str("argument '", argument.name, "' is of type ", type.str(),
                             ", which has no text"));
    }
    mismatch(item, type, argument);
  }
  static std::optional<IValue> enum_value(const Item& item, SchemaType type) {
    if (item.kind != Item::Kind::Word) return std::nullopt;
    std::optional<int64_t> found = enum_word_value(type.kind(), item.string);
    if (!found) return std::nullopt;
    return IValue(*found);
  }

  IValue list(const Item& item, SchemaType type, const Argument& argument) const {
    std::vector<IValue> values;
    if (item.kind == Item::Kind::List) {
      for (const Item& element : item.elements) {
        values.push_back(element_of(element, type.element(), argument));
      }
    } else if (type.fixed_size()) {
      values.assign(static_cast<size_t>(*type.fixed_size()),
                    element_of(item, type.element(), argument));
    } else {
      mismatch(item, type, argument, str("; write [", item.text, "]"));
    }
    return list_value(values, type.element());
  }
  IValue element_of(const Item& item, SchemaType type, const Argument& argument) const {
    if (item.is_word("None") && type.is_optional()) return {};
    return value(item, type.without_optional(), argument);
  }

  const FunctionSchema& schema_;
  std::string_view text_;
  size_t operand_count_;
  std::vector<bool> used_;
  std::vector<NamedItem> items_;
  std::vector<const Item*> given_;  // by argument; NULL if it is not in the text

 public:
  // A list in the form that kernels take.
  static IValue list_value(const std::vector<IValue>& values, SchemaType element) {
    switch (element.kind()) {
      case TypeKind::kInt:
      case TypeKind::kScalarType:
      case TypeKind::kMemoryFormat:
      case TypeKind::kLayout: {
        std::vector<int64_t> numbers;
        for (const IValue& one : values) numbers.push_back(one.toInt());
        return IValue(numbers);
      }
      case TypeKind::kFloat: {
        std::vector<double> numbers;
        for (const IValue& one : values) numbers.push_back(one.toDouble());
        return IValue(numbers);
      }
      case TypeKind::kBool: {
        lamella_value flags{};
        lamella::detail::check(lamella_value_allocate(LAMELLA_BOOL_LIST, values.size(), &flags));
        for (size_t i = 0; i < values.size(); ++i) {
          static_cast<uint8_t*>(flags.as.pointer)[i] = values[i].toBool() ? 1 : 0;
        }
        return IValue::adopt(flags);
      }
      default:
        return IValue::list(values);
    }
  }
  static OperatorArgument default_of(const Argument& argument);
};

// Converts a default to an argument value. An empty list is [] for any list type; for Tensor it is
// an undefined tensor.
struct FromDefault {
  SchemaType type;
  IValue operator()(std::monostate) const { return {}; }
  IValue operator()(bool flag) const { return IValue(flag); }
  IValue operator()(int64_t number) const { return IValue(number); }
  IValue operator()(double number) const { return IValue(number); }
  IValue operator()(const std::complex<double>& number) const {
    return complex<double>(number.real(), number.imag());
  }
  IValue operator()(const std::string& text) const {
    if (type.kind() == TypeKind::kDevice) return IValue(Device{std::string_view(text)});
    return IValue(text);
  }
  template <class T>
  IValue operator()(const std::vector<T>& list) const {
    std::vector<IValue> values;
    for (const auto& one : list) values.push_back(IValue(static_cast<T>(one)));
    return Reader::list_value(values, type.element());
  }
};

OperatorArgument Reader::default_of(const Argument& argument) {
  OperatorArgument made;
  SchemaType type = argument.type.without_optional();
  const DefaultValue::Value& value = argument.default_value->value;
  if (type.is_list() && type.holds_tensor() && !argument.default_value->is_none()) {
    made.form = Form::Operands;
  } else {
    made.value = std::visit(FromDefault{type}, value);
  }
  return made;
}

}  // namespace

std::vector<OperatorArgument> read_operator_arguments(const FunctionSchema& schema,
                                                      std::string_view text, size_t operand_count) {
  return Reader(schema, text, operand_count).read();
}

std::string operator_arguments_text(const FunctionSchema& schema,
                                    std::span<const OperatorArgument> arguments) {
  auto text_of = [](const OperatorArgument& one, SchemaType type) {
    auto name = [](int32_t operand) {
      return operand < 0 ? std::string("None") : str("%", operand);
    };
    if (one.form == Form::Operand) return name(one.operands[0]);
    if (one.form == Form::Plain) return argument_text(one.value.value(), type);
    std::string text = "[";
    for (size_t i = 0; i < one.operands.size(); ++i) {
      if (i != 0) text += ", ";
      text += name(one.operands[i]);
    }
    return text + "]";
  };
  std::string text = "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    std::string value = text_of(arguments[i], argument.type);
    if (argument.kwarg_only && argument.default_value &&
        value == text_of(Reader::default_of(argument), argument.type)) {
      continue;
    }
    if (text.size() > 1) text += ", ";
    if (argument.kwarg_only) text += argument.name + "=";
    text += value;
  }
  return text + ")";
}

}  // namespace lamella::hlo
