// A reader of the pickles in PyTorch's archives. It only builds values: names in a pickle are never
// imported or called.
#pragma once
#include "lamella/nn/serialize/tree.h"
#include "lamella/nn/serialize/zip.h"

namespace lamella::serialize::detail {

// A value on the stack of a pickle.
LAMELLA_LAZY struct PickledOf {
  enum Kind : uint8_t { kMark, kPlain, kGlobal, kStorage, kTuple, kList, kDict, kUnknown };
  using Ref = std::shared_ptr<PickledOf>;
  Kind kind = kUnknown;
  IValue plain;            // also the elements of a storage
  std::string text;        // for kGlobal: "module name"
  std::vector<Ref> items;  // for kDict: key, value, key, value, …
};

LAMELLA_LAZY class PickleReaderOf {
  using Value = PickledOf<lazy_>;
  using Ref = typename Value::Ref;

 public:
  PickleReaderOf(const ZipReaderOf<lazy_>& files, std::string_view bytes)
      : files_(files), bytes_(bytes) {}
  PickleReaderOf(const PickleReaderOf&) = delete;
  PickleReaderOf& operator=(const PickleReaderOf&) = delete;
  ~PickleReaderOf() {
    // Breaks reference cycles between values of the pickle.
    for (const Ref& value : made_) value->items.clear();
  }

  std::shared_ptr<ArchiveTreeOf<lazy_>> read() {
    Ref root = run();
    LAMELLA_CHECK(root->kind == Value::kDict,
                  "load: expected a file of values by name, got one of another value");
    auto tree = std::make_shared<ArchiveTreeOf<lazy_>>();
    fill(*root, tree.get(), 0);
    return tree;
  }
  // The value, of any type. Error for objects of classes other than those that PyTorch's files
  // share with Python.
  IValue read_value() {
    const Ref root = run();
    for (const Ref& each : made_) {
      LAMELLA_CHECK(each->kind != Value::kUnknown,
                    "pickle_load: expected tensors, numbers, strings and containers of these, got "
                    "an object of another class");
    }
    return plain(*root, 0);
  }

 private:
  static constexpr const char* kDamaged =
      "load: expected a pickle that is whole, got a damaged one";
  static constexpr int kMostInside = ArchiveTreeOf<lazy_>::kMostInside;

  std::string_view take(size_t count) {
    LAMELLA_CHECK(bytes_.size() - at_ >= count, kDamaged);
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint64_t take_number(int count) { return number_at(take(static_cast<size_t>(count)), 0, count); }
  std::string take_line() {
    size_t end = bytes_.find('\n', at_);
    LAMELLA_CHECK(end != std::string_view::npos, kDamaged);
    std::string line(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return line;
  }
  Ref make(typename Value::Kind kind, std::vector<Ref> items = {}) {
    auto value = std::make_shared<Value>();
    value->kind = kind;
    value->items = std::move(items);
    made_.push_back(value);
    return value;
  }
  void push(Ref value) { stack_.push_back(std::move(value)); }
  void push_plain(IValue plain) {
    Ref value = make(Value::kPlain);
    value->plain = std::move(plain);
    push(std::move(value));
  }
  Ref pop() {
    LAMELLA_CHECK(!stack_.empty() && stack_.back()->kind != Value::kMark, kDamaged);
    Ref value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  Ref top(typename Value::Kind kind) {
    LAMELLA_CHECK(!stack_.empty() && (stack_.back()->kind == kind), kDamaged);
    return stack_.back();
  }
  std::vector<Ref> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Value::kMark) --begin;
    LAMELLA_CHECK(begin > 0, kDamaged);
    std::vector<Ref> items(stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }
  void push_tuple(size_t count) {
    std::vector<Ref> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push(make(Value::kTuple, std::move(items)));
  }

  Ref run() {
    for (;;) {
      const char code = take(1)[0];
      switch (code) {
        case '\x80':  // the protocol
          take(1);
          break;
        case '\x95':  // the length of a frame
          take(8);
          break;
        case '(':
          push(make(Value::kMark));
          break;
        case 'N':
          push_plain(IValue());
          break;
        case '\x88':
        case '\x89':
          push_plain(IValue(code == '\x88'));
          break;
        case 'K':
          push_plain(static_cast<int64_t>(take_number(1)));
          break;
        case 'M':
          push_plain(static_cast<int64_t>(take_number(2)));
          break;
        case 'J':
          push_plain(int64_t{static_cast<int32_t>(take_number(4))});
          break;
        case '\x8a': {
          const auto count = static_cast<int>(take_number(1));
          LAMELLA_CHECK(count <= 8, kDamaged);
          uint64_t number = take_number(count);
          const int unused = 64 - 8 * count;
          if (count == 0) number = 0;
          push_plain(count == 0 ? int64_t{0} : static_cast<int64_t>(number << unused) >> unused);
          break;
        }
        case 'G': {
          uint64_t bits = __builtin_bswap64(take_number(8));
          double number;
          std::memcpy(&number, &bits, sizeof(number));
          push_plain(number);
          break;
        }
        case 'X':
          push_plain(take(take_number(4)));
          break;
        case '\x8c':
          push_plain(take(take_number(1)));
          break;
        case 'c': {
          std::string module = take_line();
          Ref global = make(Value::kGlobal);
          global->text = module + " " + take_line();
          push(std::move(global));
          break;
        }
        case ')':
          push_tuple(0);
          break;
        case '\x85':
        case '\x86':
        case '\x87':
          push_tuple(static_cast<size_t>(code - '\x84'));
          break;
        case 't': {
          std::vector<Ref> items = pop_to_mark();
          push(make(Value::kTuple, std::move(items)));
          break;
        }
        case ']':
          push(make(Value::kList));
          break;
        case 'l': {
          std::vector<Ref> items = pop_to_mark();
          push(make(Value::kList, std::move(items)));
          break;
        }
        case 'a': {
          Ref item = pop();
          top(Value::kList)->items.push_back(std::move(item));
          break;
        }
        case 'e': {
          std::vector<Ref> items = pop_to_mark();
          auto& list = top(Value::kList)->items;
          list.insert(list.end(), items.begin(), items.end());
          break;
        }
        case '}':
          push(make(Value::kDict));
          break;
        case 's': {
          Ref value = pop(), key = pop();
          auto& dict = top(Value::kDict)->items;
          dict.insert(dict.end(), {std::move(key), std::move(value)});
          break;
        }
        case 'u': {
          std::vector<Ref> items = pop_to_mark();
          LAMELLA_CHECK(items.size() % 2 == 0, kDamaged);
          auto& dict = top(Value::kDict)->items;
          dict.insert(dict.end(), items.begin(), items.end());
          break;
        }
        case '\x81':  // an object; its contents come with the opcode 'b'
          pop();
          pop();
          push(make(Value::kDict));
          break;
        case 'b': {
          Ref state = pop();
          // State of an object other than a dictionary's entries is ignored.
          LAMELLA_CHECK(!stack_.empty(), kDamaged);
          if (stack_.back()->kind == Value::kDict && stack_.back()->items.empty() &&
              state->kind == Value::kDict) {
            stack_.back()->items = state->items;
          }
          break;
        }
        case 'R': {
          Ref arguments = pop(), function = pop();
          push(call(*function, *arguments));
          break;
        }
        case 'Q':
          push(storage(*pop()));
          break;
        case 'q':
          keep(take_number(1));
          break;
        case 'r':
          keep(take_number(4));
          break;
        case '\x94':
          keep(kept_.size());
          break;
        case 'h':
          push(kept(take_number(1)));
          break;
        case 'j':
          push(kept(take_number(4)));
          break;
        case '.':
          return pop();
        default:
          LAMELLA_CHECK(false, "load: expected a pickle as save() writes it, got the operation ",
                        static_cast<int64_t>(static_cast<uint8_t>(code)));
      }
    }
  }
  void keep(uint64_t number) {
    LAMELLA_CHECK(!stack_.empty() && number <= kept_.size(), kDamaged);
    if (number == kept_.size()) kept_.emplace_back();
    kept_[number] = stack_.back();
  }
  Ref kept(uint64_t number) {
    LAMELLA_CHECK(number < kept_.size(), kDamaged);
    return kept_[number];
  }

  static const Value& item(const Value& of, size_t i) {
    LAMELLA_CHECK(i < of.items.size(), kDamaged);
    return *of.items[i];
  }
  static std::vector<int64_t> numbers(const Value& tuple) {
    std::vector<int64_t> all;
    for (const Ref& each : tuple.items) all.push_back(each->plain.toInt());
    return all;
  }
  Ref storage(const Value& id) {
    const Value& type = item(id, 1);
    Ref value = make(Value::kStorage);
    for (const StorageName& each : kStorages) {
      if (type.text != std::string("torch ") + each.name) continue;
      const std::string key(item(id, 2).plain.toStringView());
      Tensor& elements = storages_[key];
      if (!elements.defined()) {
        const int64_t count = item(id, 4).plain.toInt();
        std::string_view bytes = files_.get("data/" + key);
        const size_t size = lamella::element_size(each.dtype);
        LAMELLA_CHECK(count >= 0 && static_cast<uint64_t>(count) == bytes.size() / size &&
                          bytes.size() % size == 0,
                      "load: expected 'data/", key, "' to have ", count, " elements of ",
                      each.dtype, ", got ", bytes.size(), " bytes");
        elements = lamella::empty({count}, TensorOptions(each.dtype));
        if (!bytes.empty()) std::memcpy(elements.data_ptr(), bytes.data(), bytes.size());
      }
      LAMELLA_CHECK(elements.scalar_type() == each.dtype, kDamaged);
      value->plain = IValue(elements);
      return value;
    }
    LAMELLA_CHECK(false, "load: expected a storage that PyTorch's files have, got '", type.text,
                  "'");
    return value;
  }
  Ref call(const Value& function, const Value& arguments) {
    const std::string& name = function.text;
    if (name == "collections OrderedDict") return make(Value::kDict);
    // Typed lists, values annotated with their types, and parameters: the value itself comes first.
    if (name.rfind("torch.jit._pickle ", 0) == 0 || name == "torch._utils _rebuild_parameter") {
      LAMELLA_CHECK(!arguments.items.empty(), kDamaged);
      return arguments.items[0];
    }
    if (name != "torch._utils _rebuild_tensor_v2") return make(Value::kUnknown);
    const Value& from = item(arguments, 0);
    LAMELLA_CHECK(from.kind == Value::kStorage, kDamaged);
    Tensor elements = from.plain.template toTensor<Tensor>();
    const int64_t offset = item(arguments, 1).plain.toInt();
    std::vector<int64_t> sizes = numbers(item(arguments, 2)), strides = numbers(item(arguments, 3));
    LAMELLA_CHECK(sizes.size() == strides.size() && offset >= 0, kDamaged);
    int64_t last = offset;
    bool is_empty = false, fits = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      LAMELLA_CHECK(sizes[i] >= 0 && strides[i] >= 0, kDamaged);
      is_empty = is_empty || sizes[i] == 0;
      int64_t step = 0;
      fits = fits && !__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) &&
             !__builtin_add_overflow(last, step, &last);
    }
    LAMELLA_CHECK(is_empty || (fits && last < elements.numel()),
                  "load: expected a tensor inside of its storage of ", elements.numel(),
                  " elements, got one beyond");
    Ref value = make(Value::kPlain);
    value->plain = IValue(is_empty ? lamella::empty(sizes, elements.options())
                                   : elements.as_strided(sizes, strides, offset));
    return value;
  }

  // Adds the entries of a dictionary to a tree. A dictionary inside becomes a tree inside, and so
  // does each part of a key before a dot, as in Python's state dictionaries.
  void fill(const Value& dict, ArchiveTreeOf<lazy_>* tree, int depth) {
    check_size(depth);
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Value& key = *dict.items[i];
      const Value& value = *dict.items[i + 1];
      if (key.kind != Value::kPlain || !key.plain.isString()) continue;
      std::string name(key.plain.toStringView());
      ArchiveTreeOf<lazy_>* to = tree->place(&name, ".");
      if (value.kind == Value::kDict) {
        fill(value, to->inside(name), depth + 1);
      } else if (value.kind != Value::kUnknown) {
        to->entries.push_back(
            {name, ArchiveTreeOf<lazy_>::Kind::kAttribute, plain(value, depth), {}});
      }
    }
  }
  // A shared value is read once for each reference, so without a limit a few bytes could expand to
  // any number of values.
  void check_size(int depth) {
    LAMELLA_CHECK(depth < kMostInside && ++filled_ <= bytes_.size(), "load: expected at most ",
                  kMostInside, " values inside of each other and ", bytes_.size(), " in all");
  }
  IValue plain(const Value& value, int depth) {
    check_size(depth);
    const bool is_dict = value.kind == Value::kDict;
    if (!is_dict && value.kind != Value::kTuple && value.kind != Value::kList) return value.plain;
    std::vector<IValue> items;
    for (const Ref& each : value.items) items.push_back(plain(*each, depth + 1));
    if (value.kind == Value::kTuple) return IValue::tuple(items);
    if (is_dict) return IValue::dict(items);
    auto all = [&](uint8_t tag) {
      for (const IValue& each : items) {
        if (each.tag() != tag) return false;
      }
      return !items.empty();
    };
    if (all(LAMELLA_INT)) return IValue(numbers(value));
    if (all(LAMELLA_TENSOR)) {
      std::vector<Tensor> tensors;
      for (const IValue& each : items) tensors.push_back(each.template toTensor<Tensor>());
      return IValue(ArrayRef<Tensor>(tensors));
    }
    if (all(LAMELLA_DOUBLE)) {
      std::vector<double> numbers;
      for (const IValue& each : items) numbers.push_back(each.toDouble());
      return IValue(ArrayRef<double>(numbers));
    }
    return IValue::list(items);
  }

  const ZipReaderOf<lazy_>& files_;
  std::string_view bytes_;
  size_t at_ = 0;
  size_t filled_ = 0;
  std::vector<Ref> stack_, kept_, made_;
  std::map<std::string, Tensor> storages_;
};

}  // namespace lamella::serialize::detail
