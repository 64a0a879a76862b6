// Operators that take a value of any type and query its type, as PyTorch's extensions write them.
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/custom_class.h>
#include <torch/script.h>
#include <torch/serialize.h>

#include <deque>

namespace {

struct Label : torch::CustomClassHolder {
  explicit Label(std::string name) : name(std::move(name)) {}
  std::string name;
};
struct Other : torch::CustomClassHolder {};

template <class T>
bool is_of_class(const c10::IValue& value) {
  return value.isCustomClass() &&
         value.type().get() ==
             static_cast<const c10::Type*>(c10::getCustomClassType<c10::intrusive_ptr<T>>().get());
}

std::string described(const c10::IValue& value) {
  std::string text = value.type()->str();
  if (value.isString()) return text + " " + value.toString()->string();
  if (value.isInt()) return text + " " + std::to_string(value.toInt());
  if (is_of_class<Label>(value)) return "label " + value.toCustomClass<Label>()->name;
  if (is_of_class<Other>(value)) return "other";
  std::deque<std::string> entries;
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      entries.push_back(described(entry.key()) + ": " + described(entry.value()));
    }
  } else if (value.isList()) {
    for (const c10::IValue& entry : value.toListRef()) entries.push_back(described(entry));
  } else if (value.isTuple()) {
    for (const auto& entry : value.toTupleRef().elements()) entries.push_back(described(entry));
    entries.push_back(std::to_string(value.toTuple()->elements().size()));
  }
  for (const std::string& entry : entries) text += " <" + entry + ">";
  return text;
}

// The values of a dictionary by their keys, in the order of the keys that are asked for.
at::Tensor picked(const c10::IValue& values, const std::vector<std::string>& keys) {
  c10::Dict<std::string, int64_t> numbers;
  for (const auto& entry : values.toGenericDict()) {
    numbers.insert(entry.key().toStringRef(), entry.value().toInt());
  }
  at::Tensor result = torch::zeros({static_cast<int64_t>(keys.size())}, torch::kI64);
  for (size_t i = 0; i < keys.size(); ++i) result[i] = numbers.at(keys[i]);
  return result;
}

c10::IValue swapped(const c10::IValue& pair) {
  const auto tuple = pair.toTuple();
  return c10::ivalue::Tuple::create(
      std::vector<c10::IValue>{tuple->elements()[1], tuple->elements()[0]});
}

// A value as the bytes of a file, and back.
at::Tensor saved(const c10::IValue& value) {
  std::vector<char> bytes = torch::pickle_save(value);
  return torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, torch::kU8).clone();
}
c10::IValue loaded(const at::Tensor& bytes) {
  const char* begin = static_cast<const char*>(bytes.data_ptr());
  return torch::jit::pickle_load(std::vector<char>(begin, begin + bytes.numel()));
}

}  // namespace

TORCH_LIBRARY(compat_values, m) {
  m.class_<Label>("Label").def(torch::init<std::string>());
  m.class_<Other>("Other").def(torch::init<>());
  m.def("described(Any value) -> str", described);
  m.def("picked(Any values, str[] keys) -> Tensor", picked);
  m.def("swapped(Any pair) -> Any", swapped);
  m.def("saved(Any value) -> Tensor", saved);
  m.def("loaded(Tensor bytes) -> Any", loaded);
}
