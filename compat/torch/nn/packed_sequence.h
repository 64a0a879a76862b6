// lamella::nn::utils::rnn: batches of sequences of different lengths, padded or packed.
#pragma once
#include "lamella/nn/layers.h"

namespace lamella::nn::utils::rnn {

// The rows of all sequences ordered by time step: batch_sizes[t] rows for step t. sorted_indices is
// the permutation that sorts the sequences by falling length; unsorted_indices is its inverse. Both
// are undefined for sequences that were already sorted.
LAMELLA_LAZY class PackedSequenceOf {
 public:
  PackedSequenceOf() = default;
  explicit PackedSequenceOf(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                            Tensor unsorted_indices = {})
      : data_(std::move(data)),
        batch_sizes_(std::move(batch_sizes)),
        sorted_indices_(std::move(sorted_indices)),
        unsorted_indices_(std::move(unsorted_indices)) {
    LAMELLA_CHECK(batch_sizes_.device().is_cpu(),
                  "PackedSequence: expected 'batch_sizes' to be on the CPU, got ",
                  batch_sizes_.device());
    if (sorted_indices_.defined() && !unsorted_indices_.defined()) {
      unsorted_indices_ = sorted_indices_.argsort();
    }
  }
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  PackedSequenceOf to(const TensorOptions& options) const {
    auto moved = [&](const Tensor& order) {
      return order.defined() ? order.to(options.dtype(order.scalar_type())) : order;
    };
    return PackedSequenceOf(data_.to(options), batch_sizes_, moved(sorted_indices_),
                            moved(unsorted_indices_));
  }
  PackedSequenceOf cpu() const { return to(data_.options().device(kCPU)); }
  PackedSequenceOf cuda() const { return to(data_.options().device(kCUDA)); }
  Device device() const { return data_.device(); }
  bool is_cuda() const { return data_.is_cuda(); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};
using PackedSequence = PackedSequenceOf<>;

namespace detail {
LAMELLA_LAZY std::vector<int64_t> numbers_of(const Tensor& tensor) {
  Tensor plain = tensor.to(TensorOptions(kLong).device(kCPU)).contiguous();
  return {plain.template data_ptr<int64_t>(), plain.template data_ptr<int64_t>() + plain.numel()};
}
}  // namespace detail

// Packs a padded batch [T, N, …] or [N, T, …]. With `enforce_sorted` the lengths must be sorted,
// the longest first; otherwise the sequences are sorted here.
LAMELLA_LAZY PackedSequence pack_padded_sequence(Tensor input, Tensor lengths,
                                                 bool batch_first = false,
                                                 bool enforce_sorted = true) {
  const int64_t sequences = input.size(batch_first ? 0 : 1);
  LAMELLA_CHECK(lengths.dim() == 1 && lengths.size(0) == sequences,
                "pack_padded_sequence: expected ", sequences, " 'lengths', got ", lengths.sizes());
  Tensor order;
  lengths = lengths.to(TensorOptions(kLong).device(kCPU));
  if (!enforce_sorted) {
    std::tie(lengths, order) = lengths.sort(-1, true);
    order = order.to(TensorOptions(input.device()));
    input = input.index_select(batch_first ? 0 : 1, order);
  }
  if (batch_first) input = input.transpose(0, 1);
  std::vector<int64_t> found = detail::numbers_of(lengths);
  for (size_t i = 0; i < found.size(); ++i) {
    LAMELLA_CHECK(i == 0 || found[i - 1] >= found[i],
                  "pack_padded_sequence: expected 'lengths' to fall, got ", found,
                  "; with enforce_sorted=false the sequences are sorted");
    LAMELLA_CHECK(found[i] > 0, "pack_padded_sequence: expected 'lengths' to be at least 1, got ",
                  found);
    LAMELLA_CHECK(found[i] <= input.size(0),
                  "pack_padded_sequence: expected 'lengths' to be at most ", input.size(0),
                  ", got ", found);
  }
  LAMELLA_CHECK(!found.empty(),
                "pack_padded_sequence: expected 'lengths' of at least one sequence");
  std::vector<Tensor> steps;
  Tensor batch_sizes = lamella::empty({found[0]}, TensorOptions(kLong));
  auto going_on = static_cast<int64_t>(found.size());
  for (int64_t t = 0; t < found[0]; ++t) {
    while (found[static_cast<size_t>(going_on - 1)] <= t) --going_on;
    steps.push_back(input[t].narrow(0, 0, going_on));
    batch_sizes.template data_ptr<int64_t>()[t] = going_on;
  }
  return PackedSequence(lamella::cat(steps), batch_sizes, order);
}

// The padded batch, at least `total_length` long, and the lengths of the sequences.
LAMELLA_LAZY std::tuple<Tensor, Tensor> pad_packed_sequence(
    PackedSequence sequence, bool batch_first = false, double padding_value = 0,
    std::optional<int64_t> total_length = std::nullopt) {
  std::vector<int64_t> sizes = detail::numbers_of(sequence.batch_sizes());
  LAMELLA_CHECK(!sizes.empty(), "pad_packed_sequence: expected a sequence of at least one step");
  const auto steps = static_cast<int64_t>(sizes.size());
  const int64_t length = total_length ? *total_length : steps;
  LAMELLA_CHECK(length >= steps, "pad_packed_sequence: expected 'total_length' to be at least ",
                steps, ", got ", length);
  std::vector<int64_t> shape = sequence.data().sizes().vec();
  shape[0] = sizes[0];
  std::vector<Tensor> rows = sequence.data().split_with_sizes(sizes, 0);
  Tensor lengths = lamella::zeros({sizes[0]}, TensorOptions(kLong));
  for (int64_t t = 0; t < length; ++t) {
    const int64_t here = t < steps ? sizes[static_cast<size_t>(t)] : 0;
    for (int64_t i = 0; i < here; ++i) ++lengths.template data_ptr<int64_t>()[i];
    shape[0] = sizes[0] - here;
    Tensor padding = lamella::full(shape, padding_value, sequence.data().options());
    if (t >= steps) {
      rows.push_back(padding);
    } else if (shape[0] > 0) {
      rows[static_cast<size_t>(t)] = lamella::cat({rows[static_cast<size_t>(t)], padding});
    }
  }
  Tensor padded = lamella::stack(rows, batch_first ? 1 : 0);
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(batch_first ? 0 : 1, sequence.unsorted_indices());
    lengths = lengths.index_select(0, sequence.unsorted_indices().cpu());
  }
  return {padded, lengths};
}

// Pads sequences [T_i, …] to one tensor [T, N, …] or [N, T, …].
LAMELLA_LAZY Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false,
                                 double padding_value = 0,
                                 std::string_view padding_side = "right") {
  LAMELLA_CHECK(!sequences.empty(), "pad_sequence: expected at least one of 'sequences'");
  const bool left = padding_side == "left";
  LAMELLA_CHECK(left || padding_side == "right",
                "pad_sequence: expected 'padding_side' to be left or right, got ", padding_side);
  int64_t longest = 0;
  for (const Tensor& each : sequences) longest = std::max(longest, each.size(0));
  std::vector<Tensor> padded;
  for (const Tensor& each : sequences) {
    std::vector<int64_t> shape = each.sizes().vec();
    shape[0] = longest - each.size(0);
    Tensor filler = lamella::full(shape, padding_value, each.options());
    padded.push_back(shape[0] == 0 ? each
                     : left        ? lamella::cat({filler, each})
                                   : lamella::cat({each, filler}));
  }
  return lamella::stack(padded, batch_first ? 0 : 1);
}
LAMELLA_LAZY PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true) {
  Tensor lengths = lamella::empty({static_cast<int64_t>(sequences.size())}, TensorOptions(kLong));
  for (size_t i = 0; i < sequences.size(); ++i) {
    lengths.template data_ptr<int64_t>()[i] = sequences[i].size(0);
  }
  return pack_padded_sequence(pad_sequence(sequences), lengths, false, enforce_sorted);
}

}  // namespace lamella::nn::utils::rnn
