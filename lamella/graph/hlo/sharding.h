// Shardings: which part of an array each of several devices has.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::hlo {

// Note [Parts of arrays]
//   A sharding cuts an array along its dimensions, and names the devices of each part. A device
//   that it does not name, as of a maximal sharding, has no part. Without devices all have the
//   whole array. Of an array that is not reduced yet each device has a term of a sum.
struct Sharding {
  std::vector<int64_t> parts;    // along each dimension
  std::vector<int64_t> devices;  // of the parts in row-major order, `copies` for each
  int64_t copies = 1;
  int64_t terms = 1;  // among the copies, which are then copies of one term after the other

  // {replicated}, {maximal device=1}, {devices=[2,1,2]0,1,2,3 last_tile_dim_replicate} or with
  // {devices=[2,2]<=[2,2]T(1,0)}. Other texts mean that all devices have the whole array.
  static Sharding parse(std::string_view text);
  // The text that parse() reads, for an array of `rank` dimensions.
  std::string to_string(int64_t rank) const;
  // The elements of {{...}, {...}}, or the text alone.
  static std::vector<std::string_view> elements(std::string_view text);

  bool is_whole() const { return devices.empty(); }
  // The sizes of a part of an array of these dimensions; parts at the end may have less.
  std::vector<int64_t> part_of(std::span<const int64_t> dimensions) const;
  // Where the device's part begins; nullopt if it has none.
  std::optional<std::vector<int64_t>> start_of(int64_t device,
                                               std::span<const int64_t> dimensions) const;
  // Which of the terms of its part it has.
  int64_t term_of(int64_t device) const;
  // Whether it is the first of those that have its part, and the same term.
  bool is_first(int64_t device) const;
};

// The rows of {{0,1},{2,3}} or [2,2]<=[2,2]T(1,0).
std::vector<std::vector<int64_t>> device_groups(std::string_view text);
// All numbers of a text, in order.
std::vector<int64_t> numbers_of(std::string_view text);

}  // namespace lamella::hlo
