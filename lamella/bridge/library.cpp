// Loads a library of operators, describes them, and says what shapes their results have.
#include "lamella/abi/loading.h"
#include "lamella/abi/policy.h"
#include "lamella/bridge/chain.h"
#include "lamella/core/device.h"
#include "lamella/core/scalar_type.h"

namespace lamella::bridge {
namespace {

std::string_view without_aliases(std::string_view type, std::string* aliases, std::string* whole) {
  size_t open = type.find('(');
  if (open == std::string_view::npos) return type;
  size_t close = type.find(')', open);
  *aliases = type.substr(open + 1, close - open - 1);
  *whole = std::string(type.substr(0, open)) + std::string(type.substr(close + 1));
  return *whole;
}

// A text of JSON, or null.
std::string quoted(const char* text) {
  if (text == nullptr) return "null";
  std::string made = "\"";
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') made += '\\';
    made += *text == '\n' ? ' ' : *text;
  }
  return made + '"';
}
template <class Items>
std::string list(Items items, size_t size) {
  std::string made = "[";
  for (size_t i = 0; i < size; ++i) made += (i != 0 ? ", " : "") + std::to_string(items[i]);
  return made + ']';
}

// The tensor without memory, with other strides.
OwnedTensor strided(lamella_tensor* t, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return OwnedTensor::borrow(t);
    last += (sizes[i] - 1) * strides[i];
  }
  const int64_t elements = last + 1;
  lamella_tensor* all = nullptr;
  check(lamella_tensor_empty(1, &elements, t->scalar_type, t->device_type, -1, &all));
  const OwnedTensor owned(all);
  lamella_tensor* made = nullptr;
  check(lamella_tensor_as_strided(all, t->ndim, sizes.data(), strides.data(), 0, &made));
  return OwnedTensor(made);
}

// One line of JSON for an operator.
lamella_status describe(void* context, const lamella_operator* op) {
  std::string& text = *static_cast<std::string*>(context);
  const lamella_derivative* d = lamella_operator_derivative(op);
  text += "{\"name\": " + quoted(op->name) + ", \"overload\": " + quoted(op->overload) +
          ", \"schema\": " + quoted(lamella_operator_schema(op)) +
          ", \"batching\": " + quoted(lamella_operator_policy(op, "batching")) +
          ", \"autocast\": " + quoted(lamella_operator_policy(op, "autocast"));
  for (int32_t kind : {0, 1}) {
    text += kind == 0 ? ", \"arguments\": [" : "], \"returns\": [";
    const std::vector<Argument> all = arguments_of(op, kind);
    for (uint32_t i = 0; i < all.size(); ++i) {
      lamella_argument_info info;
      check(lamella_operator_argument(op, kind, i, &info));
      text += (i != 0 ? ", [" : "[") + quoted(info.name) + ", " + quoted(all[i].type.c_str()) +
              ", " + quoted(all[i].aliases.c_str()) + ", " +
              list(std::initializer_list<int32_t>{info.kwarg_only, info.is_write, info.is_out,
                                                  info.has_default}
                       .begin(),
                   4) +
              ']';
    }
  }
  text += ']';
  if (d != nullptr) {
    std::vector<uint32_t> saved;
    for (uint32_t k = 0; k < d->saved_count; ++k) {
      const uint32_t index = d->saved[k].index;
      const bool known = std::find(saved.begin(), saved.end(), index) != saved.end();
      if (d->saved[k].is_return != 0 && !known) saved.push_back(index);
    }
    text += ", \"slots\": " + list(d->slots, d->slot_count) +
            ", \"differentiable_returns\": " + std::to_string(d->differentiable_returns) +
            ", \"flags\": " + std::to_string(d->flags) +
            ", \"has_backward\": " + (d->backward != nullptr ? "true" : "false") +
            ", \"saved_returns\": " + list(saved, saved.size());
  }
  text += "}\n";
  return LAMELLA_OK;
}

}  // namespace

std::vector<Argument> arguments_of(const lamella_operator* op, int32_t kind) {
  const uint32_t count = kind == 0 ? op->argument_count : op->return_count;
  std::vector<Argument> all;
  for (uint32_t i = 0; i < count; ++i) {
    lamella_argument_info info;
    check(lamella_operator_argument(op, kind, i, &info));
    Argument one;
    one.name = info.name;
    one.write = info.is_write != 0;
    std::string whole;
    std::string_view type = without_aliases(info.type, &one.aliases, &whole);
    one.type = type;
    if (type.ends_with('?')) {
      one.optional = true;
      type.remove_suffix(1);
    }
    const size_t list = type.rfind('[');
    const bool is_list = list != std::string_view::npos && type.ends_with(']');
    const std::string_view element = is_list ? type.substr(0, list) : type;
    if (element == "Tensor") {
      one.kind = is_list ? Kind::kTensorList : Kind::kTensor;
    } else if (element == "Tensor?" && is_list) {
      one.kind = Kind::kOptionalTensors;
    } else if (element == "Scalar" && !is_list) {
      one.kind = Kind::kScalar;
    } else if (element == "int" || element == "SymInt") {
      one.kind = is_list ? Kind::kIntList : Kind::kInt;
    } else if (element == "float") {
      one.kind = is_list ? Kind::kDoubleList : Kind::kDouble;
    } else if (element == "bool") {
      one.kind = is_list ? Kind::kBoolList : Kind::kBool;
    } else if (element == "str" && !is_list) {
      one.kind = Kind::kString;
    } else if (element == "Device" && !is_list) {
      one.kind = Kind::kDevice;
    } else if ((element == "ScalarType" || element == "Layout" || element == "MemoryFormat") &&
               !is_list) {
      one.kind = Kind::kInt;
      one.number = true;
    }
    all.push_back(std::move(one));
  }
  return all;
}

lamella_tensor* copied(lamella_tensor* tensor) {
  static const lamella_operator* clone = [] {
    const lamella_operator* found = nullptr;
    check(lamella_find_operator("aten::clone", "", &found));
    return found;
  }();
  lamella_value arguments[2] = {};
  arguments[0].tag = LAMELLA_TENSOR;
  arguments[0].as.tensor = tensor;
  arguments[1].tag = LAMELLA_INT;  // MemoryFormat: contiguous
  lamella_value result = {};
  check(lamella_call_boxed(clone, arguments, 2, &result, 1));
  return result.as.tensor;
}

}  // namespace lamella::bridge

using namespace lamella;
using namespace lamella::bridge;

// The operators of a library, a line each; NULL: lamella_error_text() says why. The text is kept
// for this thread until its next call. The library stays loaded.
LAMELLA_BRIDGE_API const char* lamella_bridge_load(const char* path) {
  static thread_local std::string text;
  text.clear();
  void* handle = nullptr;
  lamella_status status = lamella_load_library(path, &handle);
  if (status == LAMELLA_OK) status = lamella_visit_operators(handle, &describe, &text);
  return status == LAMELLA_OK ? text.c_str() : nullptr;
}

// The results of a call on tensors without memory: call: a chain without transforms; tensors: for
// each (sizes, strides or null, dtype). Gives for each return null, a number, a text, or for a
// tensor (sizes, strides, offset, dtype, number of the tensor that it is a view of or -1), in a
// list where the return is one. The text is kept as above.
LAMELLA_BRIDGE_API const char* lamella_bridge_meta(const char* call, const char* tensors,
                                                   lamella_status* status) {
  static thread_local std::string text;
  text = "[";
  *status = guarded([&] {
    const Chain chain(call);
    const Json given = parse(tensors);
    Tensors metas;
    std::vector<lamella_tensor*> xs;
    for (const Json& one : given) {
      const auto sizes = one.at(0).get<std::vector<int64_t>>();
      const bool has_strides = one.at(1).is_array();
      const auto strides =
          has_strides ? one[1].get<std::vector<int64_t>>() : std::vector<int64_t>();
      const lamella_value type = named_value(Argument(), one.at(2).get_ref<const std::string&>());
      lamella_tensor* made = nullptr;
      check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(),
                                 static_cast<uint8_t>(type.as.i),
                                 static_cast<uint8_t>(DeviceType::Meta), -1, &made));
      metas.emplace_back(made);
      if (has_strides) metas.back() = strided(made, sizes, strides);
      xs.push_back(metas.back().get());
    }
    Results results(chain.op);
    chain.call(xs, results);
    auto add = [&](const lamella_tensor* t) {
      if (t == nullptr) {
        text += "null";
        return;
      }
      int base = -1;
      for (size_t i = 0; i < xs.size(); ++i) {
        if (xs[i]->storage == t->storage) base = static_cast<int>(i);
      }
      text += '[' + list(t->sizes, static_cast<size_t>(t->ndim)) + ", " +
              list(t->strides, static_cast<size_t>(t->ndim)) + ", " +
              std::to_string(t->storage_offset) + ", " +
              quoted(dtype_name(static_cast<ScalarType>(t->scalar_type))) + ", " +
              std::to_string(base) + ']';
    };
    for (size_t r = 0; r < results.size(); ++r) {
      const lamella_value& value = results[r];
      if (r != 0) text += ", ";
      if (value.tag == LAMELLA_TENSOR) {
        add(value.as.tensor);
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        text += '[';
        for (uint32_t k = 0; k < value.size; ++k) {
          if (k != 0) text += ", ";
          add(static_cast<lamella_tensor* const*>(value.as.pointer)[k]);
        }
        text += ']';
      } else if (value.tag == LAMELLA_INT) {
        text += std::to_string(value.as.i);
      } else if (value.tag == LAMELLA_BOOL) {
        text += value.as.i != 0 ? "true" : "false";
      } else if (value.tag == LAMELLA_DOUBLE) {
        char number[32];
        std::snprintf(number, sizeof number, "%.17g", value.as.d);
        text += number;
      } else if (value.tag == LAMELLA_STRING) {
        text += quoted(std::string(static_cast<const char*>(value.as.pointer), value.size).c_str());
      } else {
        text += "null";
      }
    }
    text += ']';
  });
  return text.c_str();
}

LAMELLA_BRIDGE_API const char* lamella_bridge_error() { return lamella_error_text(); }
