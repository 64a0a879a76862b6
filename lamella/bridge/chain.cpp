// Chains of transforms, run on Lamella's tensors by the C ABI alone.
#include "lamella/bridge/chain.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "lamella/abi/vmap.h"
#include "lamella/core/device.h"
#include "lamella/core/scalar_type.h"

namespace lamella::bridge {
namespace {

// Modes of the thread for a block.
class Modes {
 public:
  Modes(uint32_t which, uint32_t value) : which_(which), before_(lamella_set_modes(which, value)) {}
  ~Modes() { lamella_set_modes(which_, before_); }
  Modes(const Modes&) = delete;
  Modes& operator=(const Modes&) = delete;

 private:
  uint32_t which_, before_;
};
constexpr uint32_t kRecordingOff = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE;

OwnedTensor called(const char* name, lamella_tensor* x) {
  const lamella_operator* op = nullptr;
  check(lamella_find_operator(name, "", &op));
  std::vector<lamella_value> arguments(op->argument_count);  // the others are none
  arguments[0].tag = LAMELLA_TENSOR;
  arguments[0].as.tensor = x;
  lamella_value result = {};
  check(lamella_call_boxed(op, arguments.data(), op->argument_count, &result, 1));
  return OwnedTensor(result.as.tensor);
}
OwnedTensor zeros_like(lamella_tensor* x) {
  return called("aten::zeros_like", called("aten::detach", x).get());
}

// How many vmaps of chains run on this thread, and whether forward mode is this thread's.
thread_local int levels = 0;
thread_local bool is_forward = false;

// An alias whose gradient is wanted.
OwnedTensor alias_of(lamella_tensor* x) {
  OwnedTensor all = OwnedTensor::borrow(x);
  if (levels > 0) {
    lamella_tensor* wrapped = nullptr;
    check(lamella_vmap_wrap_all(x, &wrapped));
    all = OwnedTensor(wrapped);
  }
  if (lamella_tensor_requires_grad(all.get()) != 0) return called("aten::alias", all.get());
  // A view keeps a tangent.
  OwnedTensor made = called(is_forward ? "aten::alias" : "aten::detach", all.get());
  check(lamella_tensor_set_requires_grad(made.get(), 1));
  return made;
}

// The gradients of `inputs`, zeros where there is none.
Tensors gradients(TensorSpan outputs, TensorSpan grads, const Tensors& inputs, uint32_t flags) {
  std::vector<lamella_tensor*> roots, given, wanted;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (lamella_tensor_requires_grad(outputs[i]) == 0) continue;
    roots.push_back(outputs[i]);
    given.push_back(grads[i]);
  }
  for (const OwnedTensor& x : inputs) wanted.push_back(x.get());
  std::vector<lamella_tensor*> found(wanted.size());
  if (!roots.empty()) {
    check(lamella_backward_run(roots.data(), given.data(), static_cast<uint32_t>(roots.size()),
                               wanted.data(), static_cast<uint32_t>(wanted.size()),
                               flags | LAMELLA_ALLOW_UNUSED, found.data()));
  }
  Tensors made;
  for (lamella_tensor* g : found) made.emplace_back(g);
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].get() == nullptr) made[i] = zeros_like(wanted[i]);
  }
  return made;
}

std::vector<int32_t> numbers_of(const Json& list) {
  std::vector<int32_t> made;
  for (const Json& one : list) made.push_back(static_cast<int32_t>(whole(one)));
  return made;
}
// JSON has no NaN and infinities: {"f": "nan"}.
double real(const Json& number) {
  if (number.is_number()) return number.get<double>();
  return std::strtod(number.at("f").get_ref<const std::string&>().c_str(), nullptr);
}

std::string_view last_word(std::string_view name) {
  while (name.ends_with('\'') || name.ends_with('>')) name.remove_suffix(1);
  const size_t dot = name.find_last_of(".'");
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

lamella_value named_value(const Argument& argument, std::string_view name) {
  lamella_value made = {};
  made.tag = LAMELLA_INT;
  if (argument.kind == Kind::kDevice) {
    const Device device(name);
    made.tag = LAMELLA_DEVICE;
    made.as.i = static_cast<uint8_t>(device.type()) |
                static_cast<int64_t>(static_cast<uint8_t>(device.index())) << 8;
    return made;
  }
  const std::string_view word = last_word(name);
#define LAMELLA_SCALAR_TYPE(cpp, Name, number, text, ...) \
  if (word == #text) {                                    \
    made.as.i = number;                                   \
    return made;                                          \
  }
#include "lamella/core/scalar_type.def"
  constexpr const char* kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                      "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  constexpr const char* kFormats[] = {"contiguous_format", "preserve_format", "channels_last",
                                      "channels_last_3d"};
  auto is_one_of = [&](const auto& names) {
    made.as.i = std::find(std::begin(names), std::end(names), word) - std::begin(names);
    return made.as.i < std::ssize(names);
  };
  if (is_one_of(kLayouts) || is_one_of(kFormats)) return made;
  throw Failure(
      "expected '" + argument.name + "' to be " + argument.type + ", got " + std::string(name),
      LAMELLA_TYPE_ERROR);
}

lamella_value Constants::string(std::string_view text) {
  lamella_value made = {};
  made.as.pointer = texts_.emplace_back(text).data();
  made.size = static_cast<uint32_t>(text.size());
  made.tag = LAMELLA_STRING;
  return made;
}
lamella_value Constants::complex(double real, double imaginary) {
  auto& pair = words_.emplace_back(2);
  std::memcpy(pair.data(), &real, sizeof real);
  std::memcpy(&pair[1], &imaginary, sizeof imaginary);
  lamella_value made = {};
  made.as.pointer = pair.data();
  made.tag = LAMELLA_COMPLEX;
  return made;
}

lamella_value Constants::read(const Argument& argument, const Json& json) {
  lamella_value made = {};
  if (json.is_null()) return made;
  if (json.is_object() && json.contains("c")) {
    return complex(real(json["c"].at(0)), real(json["c"].at(1)));
  }
  if (json.is_object() && json.contains("n")) {
    return named_value(argument, json["n"].get_ref<const std::string&>());
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (argument.kind == Kind::kDevice || argument.number) return named_value(argument, text);
    return string(text);
  }
  if (json.is_array()) {
    const bool numbers = argument.kind == Kind::kIntList || argument.kind == Kind::kDoubleList ||
                         argument.kind == Kind::kBoolList;
    made.size = static_cast<uint32_t>(json.size());
    if (!numbers) {
      auto& list = lists_.emplace_back();
      for (const Json& item : json) list.push_back(read(Argument(), item));
      made.tag = LAMELLA_LIST;
      made.as.pointer = list.data();
      return made;
    }
    auto& words = words_.emplace_back(json.size() + 1);
    auto* bytes = reinterpret_cast<uint8_t*>(words.data());
    for (size_t k = 0; k < json.size(); ++k) {
      if (argument.kind == Kind::kBoolList) {
        bytes[k] = whole(json[k]) != 0;
      } else if (argument.kind == Kind::kDoubleList) {
        words[k] = std::bit_cast<uint64_t>(real(json[k]));
      } else {
        words[k] = static_cast<uint64_t>(whole(json[k]));
      }
    }
    made.tag = argument.kind == Kind::kBoolList     ? LAMELLA_BOOL_LIST
               : argument.kind == Kind::kDoubleList ? LAMELLA_DOUBLE_LIST
                                                    : LAMELLA_INT_LIST;
    made.as.pointer = words.data();
    return made;
  }
  if (json.is_number_float() || json.is_object() ||
      (argument.kind == Kind::kDouble && json.is_number())) {
    made.tag = LAMELLA_DOUBLE;
    made.as.d = real(json);
    return made;
  }
  made.tag = json.is_boolean() && argument.kind != Kind::kInt ? LAMELLA_BOOL : LAMELLA_INT;
  made.as.i = whole(json);
  if (argument.kind == Kind::kDouble) {
    made.tag = LAMELLA_DOUBLE;
    made.as.d = static_cast<double>(whole(json));
  }
  return made;
}

Json parse(std::string_view text) {
  Json made = Json::parse(text, nullptr, false);
  if (made.is_discarded()) {
    throw Failure("bridge: expected the text of a call", LAMELLA_VALUE_ERROR);
  }
  return made;
}
int64_t whole(const Json& number) {
  return number.is_boolean() ? int64_t{number.get<bool>()} : number.get<int64_t>();
}

Chain::Chain(std::string_view text) {
  const Json json = parse(text);
  const auto& full = json.at(0).get_ref<const std::string&>();
  const size_t dot = full.find('.', full.find("::"));
  const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
  check(lamella_find_operator(full.substr(0, dot).c_str(), overload.c_str(), &op));
  arguments = arguments_of(op, 0);
  returns = arguments_of(op, 1);
  const Json& entries = json.at(1);
  if (entries.size() != arguments.size()) {
    throw Failure(full + ": expected values of " + std::to_string(arguments.size()) + " arguments");
  }
  values.resize(arguments.size());
  places.resize(arguments.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_list = entries[i].contains("l");
    if (is_list || entries[i].contains("t")) {
      places[i] = Place{numbers_of(entries[i][is_list ? "l" : "t"]), is_list};
    } else {
      values[i] = constants_.read(arguments[i], entries[i]);
    }
  }
  for (const Json& t : json.at(2)) {
    const auto& kind = t.at(0).get_ref<const std::string&>();
    Transform& made = transforms.emplace_back();
    made.kind = kind == "vjp"   ? Transform::Kind::kVjp
                : kind == "jvp" ? Transform::Kind::kJvp
                                : Transform::Kind::kVmap;
    made.ins = numbers_of(t.at(1));
    if (t.size() > 2) made.outs = numbers_of(t[2]);
  }
}

void Chain::fill(TensorSpan xs, lamella_value* to,
                 std::deque<std::vector<lamella_tensor*>>& lists) const {
  auto of = [&](int32_t n) {
    if (n >= static_cast<int32_t>(xs.size())) {
      throw Failure(std::string(op->name) + ": expected more tensors than " +
                    std::to_string(xs.size()));
    }
    return n < 0 ? nullptr : xs[static_cast<size_t>(n)];
  };
  for (size_t i = 0; i < values.size(); ++i) {
    to[i] = values[i];
    if (!places[i]) continue;
    if (!places[i]->is_list) {
      to[i].as.tensor = of(places[i]->numbers[0]);
      to[i].tag = to[i].as.tensor != nullptr ? LAMELLA_TENSOR : LAMELLA_NONE;
      continue;
    }
    auto& list = lists.emplace_back();
    for (int32_t n : places[i]->numbers) list.push_back(of(n));
    to[i].tag = LAMELLA_TENSOR_LIST;
    to[i].as.pointer = list.data();
    to[i].size = static_cast<uint32_t>(list.size());
  }
}

void Chain::call(TensorSpan xs, Results& results) const {
  Scratch<lamella_value> given(values.size());
  std::deque<std::vector<lamella_tensor*>> lists;
  fill(xs, given.data(), lists);
  check(results.call(given.data()));
}

Tensors Chain::run_operator(TensorSpan xs) const {
  Results results(op);
  call(xs, results);
  Tensors made;
  for (lamella_value& value : results) {
    if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) made.push_back(OwnedTensor::borrow(list[k]));
    } else {  // empty where it is no tensor
      made.push_back(OwnedTensor::borrow(value.tag == LAMELLA_TENSOR ? value.as.tensor : nullptr));
    }
  }
  return made;
}

Tensors Chain::run(size_t depth, TensorSpan xs) const {
  if (depth == 0) return run_operator(xs);
  const Transform& t = transforms[depth - 1];
  if (t.kind == Transform::Kind::kVmap) return vmap(depth, xs);
  return t.kind == Transform::Kind::kVjp ? vjp(depth, xs) : jvp(depth, xs);
}

lamella_tensor* Chain::output(const Tensors& results, int32_t number) const {
  const auto at = static_cast<size_t>(number);
  if (at < results.size() && results[at].get() != nullptr) return results[at].get();
  throw Failure(std::string(op->name) + ": expected result " + std::to_string(number) +
                " to be a tensor");
}

Chain::Recorded Chain::record(size_t depth, TensorSpan primals) const {
  const Transform& t = transforms[depth - 1];
  std::vector<lamella_tensor*> full(primals.begin(), primals.end());
  Recorded made;
  for (int32_t i : t.ins) {
    made.inputs.push_back(alias_of(primals[static_cast<size_t>(i)]));
    full[static_cast<size_t>(i)] = made.inputs.back().get();
  }
  made.results = run(depth - 1, full);
  for (int32_t o : t.outs) made.outputs.push_back(output(made.results, o));
  return made;
}

// By the derivative alone, without a graph.
bool Chain::vjp_by_saved(const Transform& t, TensorSpan xs, Tensors* made) const {
  const lamella_derivative* d = lamella_operator_derivative(op);
  if (transforms.size() != 1 || d == nullptr || d->backward == nullptr) return false;
  const TensorSpan primals = xs.subspan(t.outs.size());
  uint64_t needs = 0;
  std::vector<int32_t> order;
  std::vector<bool> wanted;
  for (uint32_t s = 0; s < d->slot_count; ++s) {
    const auto& place = places[d->slots[s]];
    const std::vector<int32_t> numbers = place ? place->numbers : std::vector<int32_t>(1, -1);
    const bool wants = std::any_of(numbers.begin(), numbers.end(), [&](int32_t n) {
      return std::find(t.ins.begin(), t.ins.end(), n) != t.ins.end();
    });
    if (wants) {
      needs |= uint64_t{1} << s;
      order.insert(order.end(), numbers.begin(), numbers.end());
    }
    wanted.resize(wanted.size() + numbers.size(), wants);
  }
  if (order != t.ins) return false;
  for (const Argument& one : returns) {
    if (one.kind != Kind::kTensor) return false;
  }
  Modes off(LAMELLA_MODE_NO_GRAD, LAMELLA_MODE_NO_GRAD);
  Scratch<lamella_value> given(values.size());
  std::deque<std::vector<lamella_tensor*>> lists;
  fill(primals, given.data(), lists);
  // Results that the derivative saves are computed anew.
  Results saved(op);
  if (std::any_of(d->saved, d->saved + d->saved_count,
                  [](const lamella_saved& one) { return one.is_return != 0; })) {
    check(saved.call(given.data()));
  }
  Scratch<lamella_tensor*> grads(op->return_count);
  for (size_t k = 0; k < t.outs.size(); ++k) grads[static_cast<size_t>(t.outs[k])] = xs[k];
  std::vector<lamella_tensor*> found(wanted.size());
  check(lamella_call_backward(op, given.data(), saved.data(), grads.data(), op->return_count, needs,
                              found.data(), static_cast<uint32_t>(found.size())));
  Tensors all;
  for (lamella_tensor* one : found) all.emplace_back(one);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!wanted[i]) continue;
    made->push_back(std::move(all[i]));
    if (made->back().get() != nullptr) continue;
    made->back() = zeros_like(primals[static_cast<size_t>(t.ins[made->size() - 1])]);
  }
  return true;
}

Tensors Chain::vjp(size_t depth, TensorSpan xs) const {
  const Transform& t = transforms[depth - 1];
  Tensors made;
  if (vjp_by_saved(t, xs, &made)) return made;
  Modes on(kRecordingOff, 0);
  const Recorded recorded = record(depth, xs.subspan(t.outs.size()));
  const bool again = depth < transforms.size();
  return gradients(recorded.outputs, xs.first(t.outs.size()), recorded.inputs,
                   again ? LAMELLA_CREATE_GRAPH | LAMELLA_RETAIN_GRAPH : 0);
}

Tensors Chain::jvp(size_t depth, TensorSpan xs) const {
  if (is_forward) return jvp_by_vjps(depth, xs);
  const Transform& t = transforms[depth - 1];
  const TensorSpan primals = xs.subspan(t.ins.size());
  static std::mutex one_at_a_time;
  struct Forward {
    std::lock_guard<std::mutex> lock{one_at_a_time};
    Forward() {
      check(lamella_forward_mode(1));
      is_forward = true;
    }
    ~Forward() {
      is_forward = false;
      lamella_forward_mode(0);
    }
  };
  try {
    Modes on(kRecordingOff | LAMELLA_MODE_NO_FORWARD, 0);
    Forward forward;
    std::vector<lamella_tensor*> full(primals.begin(), primals.end());
    Tensors duals;
    for (size_t k = 0; k < t.ins.size(); ++k) {
      const auto at = static_cast<size_t>(t.ins[k]);
      duals.push_back(called("aten::alias", primals[at]));
      check(lamella_tensor_set_tangent(duals.back().get(), xs[k]));
      full[at] = duals.back().get();
    }
    const Tensors results = run(depth - 1, full);
    Tensors made;
    for (int32_t o : t.outs) {
      lamella_tensor* y = output(results, o);
      made.emplace_back(lamella_tensor_tangent(y));
      if (made.back().get() == nullptr) made.back() = zeros_like(y);
    }
    return made;
  } catch (const Failure& failure) {
    const std::string_view text = failure.what();
    if (failure.kind != LAMELLA_NOT_IMPLEMENTED || text.find("forward-mode") == text.npos) throw;
  }
  return jvp_by_vjps(depth, xs);
}

// A vjp is linear in its cotangents, and this is its vjp.
Tensors Chain::jvp_by_vjps(size_t depth, TensorSpan xs) const {
  const Transform& t = transforms[depth - 1];
  Modes on(kRecordingOff, 0);
  const Recorded recorded = record(depth, xs.subspan(t.ins.size()));
  Tensors cotangents;
  std::vector<lamella_tensor*> grads, rows;
  for (lamella_tensor* y : recorded.outputs) {
    cotangents.push_back(zeros_like(y));
    grads.push_back(cotangents.back().get());
    check(lamella_tensor_set_requires_grad(grads.back(), 1));
  }
  constexpr uint32_t kGraph = LAMELLA_CREATE_GRAPH | LAMELLA_RETAIN_GRAPH;
  const Tensors linear = gradients(recorded.outputs, grads, recorded.inputs, kGraph);
  for (const OwnedTensor& row : linear) rows.push_back(row.get());
  return gradients(rows, xs.first(t.ins.size()), cotangents, kGraph);
}

Tensors Chain::vmap(size_t depth, TensorSpan xs) const {
  const Transform& t = transforms[depth - 1];
  int64_t size = -1;
  for (size_t i = 0; i < t.ins.size() && i < xs.size(); ++i) {
    if (t.ins[i] != 0 && xs[i]->ndim > 0) size = xs[i]->sizes[0];
  }
  if (size < 0) throw Failure(std::string(op->name) + ": expected an input with a batch");
  struct Level {
    uint32_t number = 0;
    explicit Level(int64_t size) {
      check(lamella_vmap_enter(size, &number));
      ++levels;
    }
    ~Level() {
      --levels;
      lamella_vmap_leave(number);
    }
  } level(size);
  Tensors wrapped;
  std::vector<lamella_tensor*> given(xs.begin(), xs.end());
  for (size_t i = 0; i < xs.size(); ++i) {
    if (t.ins[i] == 0) continue;
    check(lamella_vmap_wrap(xs[i], level.number, &given[i]));
    wrapped.emplace_back(given[i]);
  }
  Tensors results = run(depth - 1, given);
  for (OwnedTensor& y : results) {
    if (y.get() == nullptr) continue;
    lamella_tensor* all = nullptr;
    check(lamella_vmap_unwrap_all(y.get(), level.number, &all));
    y = OwnedTensor(all);
  }
  return results;
}

}  // namespace lamella::bridge
