// Samplers: the order in which the examples of a data set are read.
#pragma once
#include <memory>
#include <vector>

#include "lamella/api/tensor_of.h"
#include "lamella/nn/serialize/archive.h"

namespace lamella::data::samplers {

// The base of requests other than a list of indices.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  // The number of examples.
  virtual size_t size() const = 0;
};

// next() returns up to batch_size indices, or nullopt at the end.
template <class Request = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = Request;
  virtual ~Sampler() = default;
  // Starts again, over `new_size` examples if it is given.
  virtual void reset(std::optional<size_t> new_size) = 0;
  virtual std::optional<Request> next(size_t batch_size) = 0;
  // Writes and reads the position.
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class Request>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const Sampler<Request>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class Request>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Sampler<Request>& sampler) {
  sampler.load(archive);
  return archive;
}
namespace detail {
// The archives are deduced, so that files without samplers do not instantiate them.
template <class Archive, class Count>
void save_count(Archive& archive, const char* key, Count count) {
  archive.write(key, lamella::tensor(static_cast<int64_t>(count)), true);
}
template <class Archive, class Count>
void load_count(Archive& archive, const char* key, Count& count) {
  Tensor read;
  archive.read(key, read, true);
  count = static_cast<Count>(read.item().template to<int64_t>());
}
}  // namespace detail

LAMELLA_LAZY class SequentialSamplerOf : public Sampler<> {
 public:
  explicit SequentialSamplerOf(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    if (new_size) size_ = *new_size;
    index_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> indices;
    while (index_ < size_ && indices.size() < batch_size) indices.push_back(index_++);
    if (indices.empty()) return std::nullopt;
    return indices;
  }
  size_t index() const noexcept { return index_; }
  void save(serialize::OutputArchiveOf<lazy_>& archive) const override {
    detail::save_count(archive, "index", index_);
  }
  void load(serialize::InputArchiveOf<lazy_>& archive) override {
    detail::load_count(archive, "index", index_);
  }

 private:
  size_t size_;
  size_t index_ = 0;
};
using SequentialSampler = SequentialSamplerOf<>;

// Indices in random order, drawn by randperm from the default generator at each reset.
LAMELLA_LAZY class RandomSamplerOf : public Sampler<> {
 public:
  explicit RandomSamplerOf(int64_t size, ScalarType index_dtype = kLong)
      : order_(lamella::randperm(size, TensorOptions(index_dtype))) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    int64_t size = new_size ? static_cast<int64_t>(*new_size) : order_.numel();
    order_ = lamella::randperm(size, order_.options());
    index_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    const int64_t left = order_.numel() - index_;
    if (left <= 0) return std::nullopt;
    const int64_t count = std::min(left, static_cast<int64_t>(batch_size));
    Tensor part = order_.slice(0, index_, index_ + count).to(kLong);
    const auto* numbers = part.template data_ptr<int64_t>();
    index_ += count;
    return std::vector<size_t>(numbers, numbers + count);
  }
  size_t index() const noexcept { return static_cast<size_t>(index_); }
  void save(serialize::OutputArchiveOf<lazy_>& archive) const override {
    detail::save_count(archive, "index", index_);
    archive.write("indices", order_, true);
  }
  void load(serialize::InputArchiveOf<lazy_>& archive) override {
    detail::load_count(archive, "index", index_);
    archive.read("indices", order_, true);
  }

 private:
  Tensor order_;
  int64_t index_ = 0;
};
using RandomSampler = RandomSamplerOf<>;

// The share of one process among many. All shares have equal sizes: the first examples are repeated
// for that, or without `allow_duplicates` the last ones left out. set_epoch() before reset() gives
// each epoch its own order.
LAMELLA_LAZY class DistributedSamplerOf : public Sampler<> {
 public:
  DistributedSamplerOf(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates)
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
    LAMELLA_CHECK_VALUE(num_replicas > 0 && rank < num_replicas,
                        "DistributedSampler: expected 'rank' to be below 'num_replicas', got ",
                        rank, " and ", num_replicas);
  }
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    if (new_size) size_ = *new_size;
    const size_t share = local_sample_count();
    const std::vector<size_t> order = this->order(share * num_replicas_);
    const auto mine = order.begin() + static_cast<std::ptrdiff_t>(rank_ * share);
    mine_.assign(mine, mine + static_cast<std::ptrdiff_t>(share));
    next_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> indices;
    while (next_ < mine_.size() && indices.size() < batch_size) indices.push_back(mine_[next_++]);
    if (indices.empty()) return std::nullopt;
    return indices;
  }
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t index() const noexcept { return next_; }
  void save(serialize::OutputArchiveOf<lazy_>& archive) const override {
    detail::save_count(archive, "sample_index_", next_);
    detail::save_count(archive, "epoch_", epoch_);
  }
  // The order is that of the epoch that was saved.
  void load(serialize::InputArchiveOf<lazy_>& archive) override {
    detail::load_count(archive, "epoch_", epoch_);
    reset();
    detail::load_count(archive, "sample_index_", next_);
  }

 protected:
  size_t local_sample_count() const {
    return allow_duplicates_ ? (size_ + num_replicas_ - 1) / num_replicas_ : size_ / num_replicas_;
  }
  // The examples of all processes, one process after the other.
  virtual std::vector<size_t> order(size_t count) const {
    std::vector<size_t> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = i % size_;
    return all;
  }

  size_t size_, num_replicas_, rank_, epoch_ = 0;
  bool allow_duplicates_;

 private:
  std::vector<size_t> mine_;
  size_t next_ = 0;
};

LAMELLA_LAZY class DistributedSequentialSamplerOf : public DistributedSamplerOf<lazy_> {
 public:
  explicit DistributedSequentialSamplerOf(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                          bool allow_duplicates = true)
      : DistributedSamplerOf<lazy_>(size, num_replicas, rank, allow_duplicates) {
    this->reset();
  }
};
using DistributedSequentialSampler = DistributedSequentialSamplerOf<>;

// All processes draw the same order, which depends on the epoch; it differs from PyTorch's.
LAMELLA_LAZY class DistributedRandomSamplerOf : public DistributedSamplerOf<lazy_> {
 public:
  explicit DistributedRandomSamplerOf(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                      bool allow_duplicates = true)
      : DistributedSamplerOf<lazy_>(size, num_replicas, rank, allow_duplicates) {
    this->reset();
  }

 private:
  std::vector<size_t> order(size_t count) const override {
    std::vector<size_t> all = DistributedSamplerOf<lazy_>::order(count);
    uint64_t state = this->epoch_;
    for (size_t i = all.size(); i > 1; --i) {
      // SplitMix64 of G. Steele, D. Lea, C. Flood, 2014.
      uint64_t z = (state += 0x9e3779b97f4a7c15);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      std::swap(all[i - 1], all[(z ^ (z >> 31)) % i]);
    }
    return all;
  }
};
using DistributedRandomSampler = DistributedRandomSamplerOf<>;

// The request for a number of examples.
struct BatchSize : CustomBatchRequest {
  explicit BatchSize(size_t size) : size_(size) {}
  size_t size() const noexcept override { return size_; }
  operator size_t() const noexcept { return size_; }  // NOLINT: implicit
  size_t size_;
};

// Batch sizes, for streaming data sets.
LAMELLA_LAZY class StreamSamplerOf : public Sampler<BatchSize> {
 public:
  explicit StreamSamplerOf(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    if (new_size) epoch_size_ = *new_size;
    given_ = 0;
  }
  std::optional<BatchSize> next(size_t batch_size) override {
    if (given_ >= epoch_size_) return std::nullopt;
    size_t count = std::min(batch_size, epoch_size_ - given_);
    given_ += count;
    return BatchSize(count);
  }
  void save(serialize::OutputArchiveOf<lazy_>& archive) const override {
    detail::save_count(archive, "examples_retrieved_so_far", given_);
  }
  void load(serialize::InputArchiveOf<lazy_>& archive) override {
    detail::load_count(archive, "examples_retrieved_so_far", given_);
  }

 private:
  size_t epoch_size_;
  size_t given_ = 0;
};
using StreamSampler = StreamSamplerOf<>;

}  // namespace lamella::data::samplers
