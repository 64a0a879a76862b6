// The values of a call from torch as Lamella's, and results as torch's: Note [Torch's stable calls]
// in torch.cpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <forward_list>
#include <memory>
#include <utility>

#include "lamella/bridge/torch_functions.h"

namespace lamella::bridge {

// The values of a call, owned.
struct CallArguments {
  explicit CallArguments(size_t count) : values(count), handles(count) {}
  ~CallArguments() {
    for (lamella_value& value : values) {
      if (value.tag == LAMELLA_TENSOR) release(value.as.tensor);
    }
    for (const auto& list : lists) {
      for (lamella_tensor* tensor : *list) release(tensor);
    }
    for (Handle text : strings) torch.torch_delete_string(text);
  }
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  // Takes over all of a call's values; those behind one that fails are given up.
  void set_all(const std::vector<Argument>& arguments, const StableValue* stack) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      try {
        set(i, arguments[i], stack[i]);
      } catch (...) {
        while (++i < arguments.size()) drop(arguments[i], stack[i]);
        throw;
      }
    }
  }

  void set(size_t i, const Argument& argument, StableValue value) {
    lamella_value& out = values[i];
    if (argument.optional) {
      auto* inner = reinterpret_cast<StableValue*>(value);
      if (inner == nullptr) return;
      value = *inner;
      delete_optional(inner);
    }
    switch (argument.kind) {
      case Kind::kTensor: {
        OwnedHandle owned(reinterpret_cast<Handle>(value));
        if (argument.write) {
          Handle again = nullptr;
          done(torch.aoti_torch_new_tensor_handle(owned.handle, &again), "keeping a tensor");
          handles[i] = OwnedHandle(again);
        }
        out.as.tensor = imported(std::move(owned));
        out.tag = LAMELLA_TENSOR;
        break;
      }
      case Kind::kInt:
        out.as.i = argument.number ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
        out.tag = LAMELLA_INT;
        break;
      case Kind::kBool:
        out.as.i = static_cast<int64_t>(value & 1);
        out.tag = LAMELLA_BOOL;
        break;
      case Kind::kDouble:
        std::memcpy(&out.as.d, &value, sizeof value);
        out.tag = LAMELLA_DOUBLE;
        break;
      case Kind::kDevice:
        out.as.i = static_cast<int64_t>((value >> 32 & 0xff) | (value & 0xff) << 8);
        out.tag = LAMELLA_DEVICE;
        break;
      case Kind::kString: {
        size_t size = 0;
        const char* text = nullptr;
        strings.push_back(reinterpret_cast<Handle>(value));
        done(torch.torch_string_length(strings.back(), &size) ||
                 torch.torch_string_c_str(strings.back(), &text),
             "reading a string");
        out.as.pointer = const_cast<char*>(text);
        out.size = static_cast<uint32_t>(size);
        out.tag = LAMELLA_STRING;
        break;
      }
      default:
        set_list(out, argument.kind, reinterpret_cast<Handle>(value));
    }
  }

  Scratch<lamella_value> values;
  Scratch<OwnedHandle> handles;  // of tensors that are written

 private:
  static void drop(const Argument& argument, StableValue value) {
    if (argument.optional) {
      auto* inner = reinterpret_cast<StableValue*>(value);
      if (inner == nullptr) return;
      value = *inner;
      delete_optional(inner);
    }
    auto* object = reinterpret_cast<Handle>(value);
    if (argument.kind == Kind::kTensor) {
      torch.aoti_torch_delete_tensor_object(object);
    } else if (argument.kind == Kind::kString) {
      torch.torch_delete_string(object);
    } else if (argument.kind >= Kind::kIntList && argument.kind <= Kind::kTensorList) {
      torch.torch_delete_list(object);
    }
  }
  static void delete_optional(StableValue* inner) {
    if (torch.torch_delete_stable_ivalue != nullptr) {
      torch.torch_delete_stable_ivalue(inner);
    } else {
      delete inner;
    }
  }

  void set_list(lamella_value& out, Kind kind, Handle list) {
    struct OwnedList {
      Handle list;
      ~OwnedList() { torch.torch_delete_list(list); }
    } owned{list};
    size_t size = 0;
    done(torch.torch_list_size(list, &size), "reading a list");
    auto& numbers = *words.emplace_back(new std::vector<StableValue>(size));
    for (size_t i = 0; i < size; ++i) {
      done(torch.torch_list_get_item(list, i, &numbers[i]), "reading a list");
    }
    out.size = static_cast<uint32_t>(size);
    out.as.pointer = numbers.data();
    if (kind == Kind::kIntList) {
      out.tag = LAMELLA_INT_LIST;
    } else if (kind == Kind::kDoubleList) {
      out.tag = LAMELLA_DOUBLE_LIST;
    } else if (kind == Kind::kBoolList) {
      auto* bytes = reinterpret_cast<uint8_t*>(numbers.data());
      for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(numbers[i] & 1);
      out.tag = LAMELLA_BOOL_LIST;
    } else {
      std::vector<OwnedHandle> items;
      for (StableValue item : numbers) items.emplace_back(reinterpret_cast<Handle>(item));
      auto& tensors = *lists.emplace_back(new std::vector<lamella_tensor*>);
      tensors.reserve(size);
      for (OwnedHandle& item : items) tensors.push_back(imported(std::move(item)));
      out.as.pointer = tensors.data();
      out.tag = LAMELLA_TENSOR_LIST;
    }
  }

  std::vector<std::unique_ptr<std::vector<StableValue>>> words;
  std::vector<std::unique_ptr<std::vector<lamella_tensor*>>> lists;
  std::vector<Handle> strings;
};

template <class Visit>
void each(const lamella_value& value, Visit visit) {
  if (value.tag == LAMELLA_TENSOR) {
    if (value.as.tensor != nullptr) visit(value.as.tensor);
  } else if (value.tag == LAMELLA_TENSOR_LIST) {
    auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
    for (uint32_t i = 0; i < value.size; ++i) {
      if (list[i] != nullptr) visit(list[i]);
    }
  }
}

// Turns results into torch's, each with memory that nothing else of the call has.
class Exporter {
 public:
  explicit Exporter(CallArguments& arguments) : arguments_(arguments) {}
  // Takes over one reference.
  Handle tensor(lamella_tensor* t, bool contiguous = false) {
    constexpr uint32_t kLazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
    bool shared = (t->flags & kLazy) != 0 || t->layout != 0 ||
                  (contiguous && (t->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0);
    shared |= is_known(t->storage);
    if (shared && t->numel != 0) {
      lamella_tensor* own = nullptr;
      try {
        own = copied(t);
      } catch (...) {
        release(t);
        throw;
      }
      release(std::exchange(t, own));
    }
    (first_ == nullptr ? first_ : more_.emplace_back()) = t->storage;
    return exported(t);
  }

 private:
  bool is_known(const void* storage) {
    bool found = storage == first_ || std::find(more_.begin(), more_.end(), storage) != more_.end();
    for (const lamella_value& value : arguments_.values) {
      each(value, [&](lamella_tensor* t) { found |= t->storage == storage; });
    }
    return found && storage != nullptr;
  }
  CallArguments& arguments_;
  const void* first_ = nullptr;  // results so far
  std::vector<const void*> more_;
};

// The values of an operator's arguments, of those of torch's operator with other parameters.
struct Gathered : Scratch<lamella_value> {
  Gathered(const std::vector<Argument>& arguments, const lamella_value* from)
      : Scratch(arguments.size()) {
    for (size_t i = 0; i < size(); ++i) {
      lamella_value& to = (*this)[i];
      if (arguments[i].kind == Kind::kScalar) {
        constexpr decltype(to.tag) kTags[] = {LAMELLA_NONE, LAMELLA_INT, LAMELLA_DOUBLE,
                                              LAMELLA_BOOL, LAMELLA_COMPLEX};
        const auto kind = static_cast<uint64_t>(from[0].as.i);
        if (kind >= std::size(kTags)) throw Failure("expected a kind of number from 0 to 4");
        to = kind == 2 ? from[2] : from[1];
        to.tag = kTags[kind];
        if (kind == 4) to.as.pointer = &numbers_.emplace_front(from[2].as.d, from[3].as.d);
        from += 4;
      } else if (arguments[i].kind == Kind::kOptionalTensors) {
        auto* tensors = static_cast<lamella_tensor* const*>(from[0].as.pointer);
        auto* places = static_cast<const int64_t*>(from[1].as.pointer);
        auto& list = lists_.emplace_front(from[1].size, nullptr);
        for (size_t k = 0; k < list.size(); ++k) {
          const int64_t at = places[k];
          if (at >= from[0].size) throw Failure("expected the number of a tensor that is given");
          if (at >= 0) list[k] = tensors[at];
        }
        to.tag = LAMELLA_TENSOR_LIST;
        to.size = static_cast<uint32_t>(list.size());
        to.as.pointer = list.data();
        from += 2;
      } else {
        to = *from++;
      }
    }
  }

 private:
  std::forward_list<std::pair<double, double>> numbers_;
  std::forward_list<std::vector<lamella_tensor*>> lists_;
};

}  // namespace lamella::bridge
