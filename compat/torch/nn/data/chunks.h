// ChunkDataset: a data set that is read in chunks, such as files, by threads that run ahead.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "lamella/nn/data/datasets.h"
#include "lamella/nn/data/loader.h"

namespace lamella::data::datasets {

// Reads whole chunks; any thread may call read_chunk().
template <class Example_, class Chunk = std::vector<Example_>>
class ChunkDataReader {
 public:
  using ChunkType = Chunk;
  using ExampleType = Example_;
  virtual ~ChunkDataReader() = default;
  virtual Chunk read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  // Starts an epoch.
  virtual void reset() = 0;
};

// `preloader_count` threads read chunks ahead until `cache_size` examples are waiting; examples of
// `cross_chunk_shuffle_count` chunks are mixed with each other.
LAMELLA_LAZY struct ChunkDatasetOptionsOf {
  ChunkDatasetOptionsOf(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                        size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    auto check = [](const char* name, size_t value, size_t least) {
      LAMELLA_CHECK_VALUE(value >= least, "ChunkDataset: expected '", name, "' to be at least ",
                          least, ", got ", value);
    };
    check("preloader_count", preloader_count, 1);
    check("batch_size", batch_size, 1);
    check("cache_size", cache_size, batch_size);
    check("cross_chunk_shuffle_count", cross_chunk_shuffle_count, 1);
  }
  LAMELLA_OPTION(size_t, preloader_count);
  LAMELLA_OPTION(size_t, batch_size);
  LAMELLA_OPTION(size_t, cache_size);
  LAMELLA_OPTION(size_t, cross_chunk_shuffle_count);
};
using ChunkDatasetOptions = ChunkDatasetOptionsOf<>;

// `ChunkSampler` draws the order of chunks, and `ExampleSampler` the one of the examples within the
// chunks that are read together. The policy is called with these examples before they are drawn.
template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final
    : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                             typename ChunkReader::BatchType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  ChunkDataset(ChunkReader reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options,
               std::function<void(UnwrappedBatchType&)> preprocessing_policy = {})
      : options_(std::move(options)),
        reader_(std::move(reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        policy_(std::move(preprocessing_policy)) {}
  ~ChunkDataset() override { stop(); }

  // The next examples, fewer of them at the end of the epoch, and nullopt behind it. What a
  // reader threw is thrown again as a WorkerException.
  BatchType get_batch(size_t batch_size) override {
    LAMELLA_CHECK_VALUE(batch_size == options_.batch_size(), "ChunkDataset: expected batches of ",
                        options_.batch_size(), " examples to be requested, got ", batch_size);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() >= batch_size || failure_ || running_ == 0; });
    if (waiting_.size() < batch_size && failure_) {
      throw WorkerException(std::exchange(failure_, nullptr));
    }
    if (waiting_.empty()) return std::nullopt;
    UnwrappedBatchType batch;
    for (; !waiting_.empty() && batch.size() < batch_size; waiting_.pop_front()) {
      batch.push_back(std::move(waiting_.front()));
    }
    changed_.notify_all();
    return batch;
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }
  // Starts an epoch, the first one behind load() where the saved one was.
  void reset() override {
    stop();
    if (!std::exchange(is_loaded_, false)) {
      reader_.reset();
      chunk_sampler_.reset(reader_.chunk_count());
    }
    waiting_.clear();
    failure_ = nullptr;
    stops_ = false;
    running_ = options_.preloader_count();
    for (size_t i = 0; i < options_.preloader_count(); ++i) {
      threads_.emplace_back([this] { preload(); });
    }
  }
  // The number of examples is unknown.
  std::optional<size_t> size() const override { return std::nullopt; }
  ChunkSamplerType& chunk_sampler() { return chunk_sampler_; }
  // The position is that of the next chunk to be read.
  void save(serialize::OutputArchive& archive) const override {
    std::lock_guard<std::mutex> lock(sampler_mutex_);
    chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    std::lock_guard<std::mutex> lock(sampler_mutex_);
    chunk_sampler_.load(archive);
    is_loaded_ = true;
  }

 private:
  void preload() {
    try {
      while (!stops_) {
        std::vector<size_t> chunks;
        {
          std::lock_guard<std::mutex> lock(sampler_mutex_);
          if (auto next = chunk_sampler_.next(options_.cross_chunk_shuffle_count())) chunks = *next;
        }
        if (chunks.empty()) break;
        UnwrappedBatchType examples = reader_.read_chunk(chunks[0]);
        for (size_t i = 1; i < chunks.size(); ++i) {
          for (auto& example : reader_.read_chunk(chunks[i])) {
            examples.push_back(std::move(example));
          }
        }
        if (policy_) policy_(examples);
        add(examples);
      }
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  void add(UnwrappedBatchType& examples) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || waiting_.size() < options_.cache_size(); });
    if (stops_ || examples.empty()) return;
    example_sampler_.reset(examples.size());
    for (size_t left = examples.size(); left > 0;) {
      auto drawn = example_sampler_.next(left);
      if (!drawn || drawn->empty()) break;
      for (size_t i : *drawn) waiting_.push_back(examples[i]);
      left -= std::min(left, drawn->size());
    }
    changed_.notify_all();
  }
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  ChunkDatasetOptions options_;
  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  std::function<void(UnwrappedBatchType&)> policy_;
  bool is_loaded_ = false;

  mutable std::mutex sampler_mutex_;  // guards chunk_sampler_
  std::mutex mutex_;                  // guards what follows
  std::condition_variable changed_;
  std::deque<typename UnwrappedBatchType::value_type> waiting_;
  std::exception_ptr failure_;
  std::atomic<bool> stops_ = false;
  size_t running_ = 0;  // threads
  std::vector<std::thread> threads_;
};

}  // namespace lamella::data::datasets
