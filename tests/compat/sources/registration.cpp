// Registrations as PyTorch's extensions write them, with each type of argument and result.
#include <torch/script.h>

namespace {

using at::Tensor;

int64_t of_list(c10::List<int64_t> x) {
  int64_t sum = 0;
  for (int64_t v : x) sum += v;
  return sum;
}
Tensor of_tensors(const c10::List<Tensor>& x, const c10::List<double>& scales) {
  Tensor sum = x.get(0) * scales[0];
  for (size_t i = 1; i < x.size(); ++i) sum = sum + x.get(i) * scales.get(i);
  return sum;
}
std::string of_strings(c10::List<std::string> x, c10::List<bool> flags) {
  std::string all;
  for (size_t i = 0; i < x.size(); ++i) {
    if (flags.get(i)) all += x.get(i);
  }
  return all;
}
std::string optional_string(std::optional<std::string> x) { return x.value_or("none"); }
int64_t optional_ints(std::optional<std::vector<int64_t>> x) {
  return x ? static_cast<int64_t>(x->size()) : -1;
}
int64_t optional_array(at::OptionalIntArrayRef x) {
  return x.has_value() ? static_cast<int64_t>(x->size()) : -1;
}
int64_t optional_tensors(std::optional<at::TensorList> x) {
  return x ? static_cast<int64_t>(x->size()) : -1;
}
int64_t list_of_optional(const c10::List<std::optional<Tensor>>& x) {
  int64_t some = 0;
  for (size_t i = 0; i < x.size(); ++i) some += x.get(i).has_value() && x.get(i)->defined();
  return some;
}
int64_t vector_of_optional(std::vector<std::optional<Tensor>> x) {
  int64_t some = 0;
  for (const auto& v : x) some = 2 * some + v.has_value();
  return some;
}
std::vector<std::vector<int64_t>> turned(std::vector<std::vector<int64_t>> x) {
  for (auto& row : x) std::reverse(row.begin(), row.end());
  return x;
}
c10::List<bool> inverted(const c10::List<bool>& x) {
  c10::List<bool> y;
  y.reserve(x.size());
  for (bool v : x) y.push_back(!v);
  return y;
}
std::array<int64_t, 3> rotated(std::array<int64_t, 3> x) { return {x[1], x[2], x[0]}; }
std::tuple<Tensor, std::optional<Tensor>> halves(const Tensor& x, bool both) {
  if (both) return {x.slice(0, 0, 1), x.slice(0, 1)};
  return {x, std::nullopt};
}
std::tuple<int64_t, double, std::string, bool> four(std::tuple<int64_t, double> x) {
  return {std::get<0>(x) + 1, std::get<1>(x) * 2, "four", true};
}
c10::Dict<std::string, Tensor> doubled(c10::Dict<std::string, Tensor> x) {
  c10::Dict<std::string, Tensor> result;
  for (const auto& entry : x) result.insert(entry.key() + "2", entry.value() * 2);
  return result;
}
c10::Dict<std::string, int64_t> lengths(const std::vector<std::string>& words) {
  c10::Dict<std::string, int64_t> all;
  for (const auto& word : words) all.insert_or_assign(word, static_cast<int64_t>(word.size()));
  return all;
}
std::unordered_map<std::string, Tensor> only(std::unordered_map<std::string, Tensor> x,
                                             const std::string& key) {
  return {{key, x.at(key) + 1}};
}
at::Scalar larger(const at::Scalar& a, const at::Scalar& b) {
  return a.toDouble() > b.toDouble() ? a : b;
}
Tensor made(std::vector<int64_t> size, std::optional<at::ScalarType> dtype,
            std::optional<at::Device> device, std::optional<at::Layout> layout) {
  return at::ones(size, at::TensorOptions().dtype(dtype).device(device).layout(layout));
}
Tensor& fill(Tensor& self, double value) { return self.fill_(value); }
std::optional<int64_t> position(const std::vector<std::string>& words, const std::string& word) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}
std::tuple<std::optional<double>, std::optional<std::string>, std::vector<std::string>> maybe(
    std::optional<bool> all) {
  if (!all) return {std::nullopt, std::nullopt, {}};
  return {0.5, *all ? "all" : "some", {"a", "b"}};
}
std::vector<double> halved(at::ArrayRef<double> x) {
  std::vector<double> y;
  for (double v : x) y.push_back(v / 2);
  return y;
}
Tensor negated(const Tensor& x) { return -x; }
void nothing(const Tensor&) {}
std::vector<Tensor> rows(const Tensor& x) { return x.unbind(0); }

struct Scaled : torch::OperatorKernel {
  explicit Scaled(double by) : by(by) {}
  Tensor operator()(Tensor x) { return x * by; }
  double by;
};

auto old_registry =
    torch::RegisterOperators()
        .op("compat_registration::of_list", &of_list)
        .op("compat_registration::only", &only)  // the only door of PyTorch's for such a type
        .op("compat_registration::of_tensors", &of_tensors)
        .op("compat_registration::lambda", [](Tensor x, int64_t n) { return x * n; })
        .op("compat_registration::named(Tensor x, *, float by=2.0) -> Tensor",
            [](Tensor x, double by) { return x * by; })
        .op("compat_registration::by_options(Tensor x) -> Tensor",
            torch::RegisterOperators::options().kernel(c10::DispatchKey::CPU,
                                                       [](Tensor x) { return x + 1; }))
        .op("compat_registration::scaled",
            torch::RegisterOperators::options().kernel<Scaled>(c10::DispatchKey::CPU, 3.0))
        .op(torch::RegisterOperators::options()
                .schema("compat_registration::catch_all(Tensor x) -> Tensor")
                .catchAllKernel<decltype(negated), &negated>());
auto old_string = torch::RegisterOperators("compat_registration::of_strings", &of_strings);

}  // namespace

TORCH_LIBRARY_FRAGMENT(compat_registration, m) {
  m.set_python_module("compat_registration.ops");
  m.impl_abstract_pystub("compat_registration.ops");
  m.def("optional_string", &optional_string);
  m.def("optional_ints", optional_ints);
  m.def("optional_array(int[]? x) -> int", &optional_array);
  m.def("optional_tensors", TORCH_FN(optional_tensors));
  m.def("list_of_optional", &list_of_optional);
  m.def("vector_of_optional", &vector_of_optional);
  m.def("turned", &turned);
  m.def("inverted", &inverted);
  m.def("rotated", &rotated);
  m.def("halves", &halves);
  m.def("four", &four);
  m.def("doubled", &doubled);
  m.def("lengths", &lengths);
  m.def("larger", &larger);
  m.def(
      "made(int[] size, *, ScalarType? dtype=None, Device? device=None, Layout? layout=None) -> "
      "Tensor");
  m.def("fill_(Tensor(a!) self, float value) -> Tensor(a!)");
  m.def("nothing", &nothing);
  m.def("position", &position);
  m.def("maybe", &maybe);
  m.def("halved", &halved);
  m.def(torch::schema("rows(Tensor x) -> Tensor[]", c10::AliasAnalysisKind::PURE_FUNCTION),
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(rows)));
  m.def("by_typed", [](const Tensor& x) {
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("compat_registration::halves", "")
                         .typed<std::tuple<Tensor, std::optional<Tensor>>(const Tensor&, bool)>();
    auto [first, second] = op.call(x, true);
    return second.has_value() ? first.sum() + second->sum() : first;
  });
}
TORCH_LIBRARY_IMPL(compat_registration, CompositeExplicitAutograd, m) {
  m.impl("made", &made);
  m.impl("fill_", TORCH_FN(fill));
}
TORCH_LIBRARY_IMPL(_, PrivateUse3, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
