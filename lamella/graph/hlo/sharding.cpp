// Reads shardings and lists of devices, and says which part of an array a device has.
#include "lamella/graph/hlo/sharding.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

int64_t product(std::span<const int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}
// The devices of "[2,2]<=[2,2]T(1,0)" from "<=" on: numbers in order, reshaped and transposed.
std::vector<int64_t> iota(std::string_view text) {
  const size_t turned = text.find('T');
  std::vector<int64_t> sizes = numbers_of(text.substr(0, turned)), order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (turned != std::string_view::npos) {
    std::vector<int64_t> stated = numbers_of(text.substr(turned));
    stated.resize(std::min(stated.size(), order.size()));
    std::ranges::copy(stated, order.begin());
  }
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  std::vector<int64_t> all{0};
  for (int64_t from : order) {
    const auto d = static_cast<size_t>(from);
    if (d >= sizes.size()) return {};
    std::vector<int64_t> more;
    for (int64_t base : all) {
      for (int64_t k = 0; k < sizes[d]; ++k) more.push_back(base + k * strides[d]);
    }
    all = std::move(more);
  }
  return all;
}
constexpr int64_t kMostDevices = 1 << 20;

}  // namespace

std::vector<int64_t> numbers_of(std::string_view text) {
  std::vector<int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    int64_t number = 0;
    auto [after, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? after : at + 1;
  }
  return numbers;
}

std::vector<std::vector<int64_t>> device_groups(std::string_view text) {
  std::vector<std::vector<int64_t>> groups;
  if (const size_t arrow = text.find("<="); arrow != std::string_view::npos) {
    const std::vector<int64_t> devices = iota(text.substr(arrow));
    const std::vector<int64_t> shape = numbers_of(text.substr(0, arrow));
    const size_t rows = shape.empty() ? 1 : static_cast<size_t>(std::max<int64_t>(shape[0], 1));
    const size_t width = devices.size() / rows;
    for (size_t i = 0; width != 0 && i + width <= devices.size(); i += width) {
      groups.emplace_back(devices.begin() + static_cast<ptrdiff_t>(i),
                          devices.begin() + static_cast<ptrdiff_t>(i + width));
    }
    return groups;
  }
  for (size_t open = text.find('{', 1); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    groups.push_back(numbers_of(text.substr(open, text.find('}', open) - open)));
  }
  return groups;
}

std::vector<std::string_view> Sharding::elements(std::string_view text) {
  if (!text.starts_with("{{") && !text.starts_with("{/*")) return {text};
  std::vector<std::string_view> found;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && ++depth == 2) begin = i;
    if (text[i] == '}' && --depth == 1) found.push_back(text.substr(begin, i + 1 - begin));
  }
  return found;
}

Sharding Sharding::parse(std::string_view text) {
  Sharding made;
  if (const size_t at = text.find("maximal device="); at != std::string_view::npos) {
    made.devices = numbers_of(text.substr(at)), made.devices.resize(1);
    return made;
  }
  const size_t at = text.find("devices=[");
  if (at == std::string_view::npos) return made;
  const size_t close = text.find(']', at);
  std::vector<int64_t> parts = numbers_of(text.substr(at, close - at));
  std::string_view rest = text.substr(std::min(close + 1, text.size()));
  const std::string_view kinds = rest.substr(std::min(rest.find("last_tile"), rest.size()));
  const std::string_view list = rest.substr(0, rest.size() - kinds.size());
  // The last dimensions count those that have the same part.
  size_t last = kinds.empty() ? 0 : 1;
  if (kinds.starts_with("last_tile_dims")) {
    last += static_cast<size_t>(std::ranges::count(kinds.substr(0, kinds.find('}')), ','));
  }
  for (; last > 0 && !parts.empty(); --last) {
    made.copies *= parts.back();
    parts.pop_back();
  }
  made.devices = list.starts_with("<=") ? iota(list) : numbers_of(list);
  const int64_t count = product(parts) * made.copies;
  if (count <= 0 || count > kMostDevices || count != static_cast<int64_t>(made.devices.size())) {
    return Sharding();
  }
  if (kinds.find("={unreduced") != std::string_view::npos) {
    const std::vector<int64_t> sizes = numbers_of(text.substr(at, close - at));
    const bool alone = kinds.starts_with("last_tile_dims={unreduced}");
    made.terms = sizes[sizes.size() - (alone ? 1 : 2)];
  }
  if (product(parts) == 1 && made.terms == 1) return Sharding();
  made.parts = std::move(parts);
  return made;
}
std::string Sharding::to_string(int64_t rank) const {
  if (is_whole()) return "{replicated}";
  if (devices.size() == 1) return str("{maximal device=", devices[0], "}");
  std::string text = "{devices=[";
  for (int64_t d = 0; d < rank; ++d) text += str(d == 0 ? "" : ",", parts[static_cast<size_t>(d)]);
  if (terms != 1) text += str(",", terms);
  if (copies != terms) text += str(",", copies / terms);
  text += "]";
  for (size_t i = 0; i < devices.size(); ++i) text += str(i == 0 ? "" : ",", devices[i]);
  if (terms != 1) {
    return text + (copies != terms ? " last_tile_dims={unreduced, replicated}}"
                                   : " last_tile_dims={unreduced}}");
  }
  return text + (copies != 1 ? " last_tile_dim_replicate}" : "}");
}

std::vector<int64_t> Sharding::part_of(std::span<const int64_t> dimensions) const {
  std::vector<int64_t> sizes(dimensions.begin(), dimensions.end());
  for (size_t d = 0; d < std::min(sizes.size(), parts.size()); ++d) {
    sizes[d] = (sizes[d] + parts[d] - 1) / parts[d];
  }
  return sizes;
}
std::optional<std::vector<int64_t>> Sharding::start_of(int64_t device,
                                                       std::span<const int64_t> dimensions) const {
  std::vector<int64_t> start(dimensions.size(), 0);
  if (is_whole()) return start;
  auto found = std::ranges::find(devices, device);
  if (found == devices.end()) return std::nullopt;
  const std::vector<int64_t> sizes = part_of(dimensions);
  int64_t number = (found - devices.begin()) / copies;
  for (size_t d = parts.size(); d-- > 0;) {
    if (d < start.size()) start[d] = std::min(number % parts[d] * sizes[d], dimensions[d]);
    number /= parts[d];
  }
  return start;
}
int64_t Sharding::term_of(int64_t device) const {
  if (is_whole()) return 0;
  return (std::ranges::find(devices, device) - devices.begin()) % copies / (copies / terms);
}
bool Sharding::is_first(int64_t device) const {
  if (is_whole()) return device == 0;
  auto found = std::ranges::find(devices, device);
  return found != devices.end() && (found - devices.begin()) % (copies / terms) == 0;
}

}  // namespace lamella::hlo
