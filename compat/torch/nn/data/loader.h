// DataLoader: iterates over the batches of a data set, which worker threads may read ahead.
#pragma once
#include <exception>
#include <iterator>
#include <memory>
#include <thread>
#include <type_traits>

#include "lamella/nn/data/samplers.h"
#include "lamella/nn/data/shuttle.h"
#include "lamella/nn/options.h"

namespace lamella::data {

// `workers` threads, each with a copy of the data set, read up to `max_jobs` batches ahead (by
// default twice the number of workers); without workers each batch is read when it is requested.
// Batches come in the sampler's order unless `enforce_ordering` is false. `drop_last` leaves out an
// incomplete last batch. `timeout` is the longest wait for one batch.
LAMELLA_LAZY struct DataLoaderOptionsOf {
  DataLoaderOptionsOf(size_t batch_size = 1) : batch_size_(batch_size) {}  // NOLINT: implicit
  LAMELLA_OPTION(size_t, batch_size);
  LAMELLA_OPTION(size_t, workers) = 0;
  LAMELLA_OPTION(std::optional<size_t>, max_jobs);
  LAMELLA_OPTION(std::optional<std::chrono::milliseconds>, timeout);
  LAMELLA_OPTION(bool, enforce_ordering) = true;
  LAMELLA_OPTION(bool, drop_last) = false;
};
using DataLoaderOptions = DataLoaderOptionsOf<>;

// The options with their defaults put in.
LAMELLA_LAZY struct FullDataLoaderOptionsOf {
  explicit FullDataLoaderOptionsOf(const DataLoaderOptionsOf<lazy_>& options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()) {}
  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};
using FullDataLoaderOptions = FullDataLoaderOptionsOf<>;

// The error that the reader of batches sees when a worker thread failed.
LAMELLA_LAZY class WorkerExceptionOf : public Error {
 public:
  explicit WorkerExceptionOf(std::exception_ptr original)
      : Error("DataLoader: a worker failed: " + text_of(original)),
        original_exception(std::move(original)) {}
  std::exception_ptr original_exception;

 private:
  static std::string text_of(const std::exception_ptr& original) {
    try {
      std::rethrow_exception(original);
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "with something that is no std::exception";
    }
  }
};
using WorkerException = WorkerExceptionOf<>;

namespace detail {

// The sampler of a data set that keeps its own position: each request is for a whole batch.
struct NoSampler {
  using BatchRequestType = size_t;
};

template <class Batch>
struct BatchOf {
  using Type = Batch;
};
template <class Batch>
struct BatchOf<std::optional<Batch>> {
  using Type = Batch;
};

}  // namespace detail

template <class Dataset, class Sampler>
class DataLoader {
 public:
  using BatchType = typename detail::BatchOf<typename Dataset::BatchType>::Type;
  using Request = typename Sampler::BatchRequestType;

  DataLoader(Dataset dataset, Sampler sampler, const DataLoaderOptions& options)
      : options_(options), dataset_(std::move(dataset)), sampler_(std::move(sampler)) {
    LAMELLA_CHECK_VALUE(options_.batch_size > 0,
                        "DataLoader: expected 'batch_size' to be at least 1, got 0");
    options_.max_jobs = std::max<size_t>(options_.max_jobs, 1);
    for (size_t i = 0; i < options_.workers; ++i) {
      if constexpr (Dataset::is_stateful) {
        threads_.emplace_back([this] { work(dataset_); });
      } else {
        auto own = std::make_shared<Dataset>(dataset_);
        threads_.emplace_back([this, own] { work(*own); });
      }
    }
  }
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  ~DataLoader() { join(); }

  // Iterates over the batches once; copies share the position. begin() starts an epoch.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = BatchType;
    using pointer = BatchType*;
    using reference = BatchType&;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(DataLoader* loader)
        : epoch_(std::make_shared<Epoch>(Epoch{loader, loader->next()})) {}
    Iterator& operator++() {
      LAMELLA_CHECK(!is_end(), "DataLoader: expected an iterator before the end to increment");
      epoch_->batch = epoch_->loader->next();
      return *this;
    }
    BatchType& operator*() const {
      LAMELLA_CHECK(!is_end(), "DataLoader: expected an iterator before the end to read");
      return *epoch_->batch;
    }
    BatchType* operator->() const { return &**this; }
    // Two iterators are equal if both are at the end, or if one is a copy of the other.
    bool operator==(const Iterator& other) const {
      return is_end() == other.is_end() && (is_end() || epoch_ == other.epoch_);
    }

   private:
    struct Epoch {
      DataLoader* loader;
      std::optional<BatchType> batch;
    };
    bool is_end() const { return epoch_ == nullptr || !epoch_->batch; }
    std::shared_ptr<Epoch> epoch_;
  };
  Iterator begin() {
    LAMELLA_CHECK(!joined_, "DataLoader: expected begin() before join()");
    reset();
    return Iterator(this);
  }
  Iterator end() { return Iterator(); }
  // Ends the threads. The loader yields no batches afterwards.
  void join() {
    if (std::exchange(joined_, true)) return;
    shuttle_.drain();
    for (size_t i = 0; i < threads_.size(); ++i) shuttle_.push_job({std::nullopt, 0});
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  const FullDataLoaderOptions& options() const noexcept { return options_; }

 private:
  struct Job {
    std::optional<Request> request;  // nullopt ends the thread
    size_t sequence_number;
  };
  struct Result {
    std::optional<BatchType> batch;
    std::exception_ptr failure;
    size_t sequence_number;
  };

  void work(Dataset& dataset) {
    for (;;) {
      Job job = shuttle_.pop_job();
      if (!job.request) return;
      Result result{std::nullopt, nullptr, job.sequence_number};
      try {
        result.batch = dataset.get_batch(std::move(*job.request));
      } catch (...) {
        result.failure = std::current_exception();
      }
      shuttle_.push_result(std::move(result));
    }
  }
  std::optional<Request> next_request() {
    if constexpr (Dataset::is_stateful) {
      return options_.batch_size;
    } else {
      std::optional<Request> request = sampler_.next(options_.batch_size);
      if (request && options_.drop_last && size_of(*request) < options_.batch_size) return {};
      return request;
    }
  }
  template <class Any>
  static size_t size_of(const Any& request) {
    if constexpr (requires { request.size(); })
      return request.size();
    else
      return request;
  }
  void reset() {
    shuttle_.drain();
    if constexpr (Dataset::is_stateful) {
      dataset_.reset();
    } else {
      sampler_.reset(std::nullopt);
    }
    job_count_ = 0;
    if (options_.enforce_ordering) {
      sequencer_ =
          std::make_unique<detail::sequencers::OrderedSequencer<Result>>(options_.max_jobs);
    } else {
      sequencer_ = std::make_unique<detail::sequencers::NoSequencer<Result>>();
    }
    for (size_t i = 0; !threads_.empty() && i < options_.max_jobs; ++i) ask();
  }
  void ask() {
    if (std::optional<Request> request = next_request()) {
      shuttle_.push_job({std::move(request), job_count_++});
    }
  }
  std::optional<BatchType> next() {
    if (threads_.empty()) {
      std::optional<Request> request = joined_ ? std::nullopt : next_request();
      if (!request) return std::nullopt;
      return dataset_.get_batch(std::move(*request));
    }
    while (std::optional<Result> result =
               sequencer_->next([this] { return shuttle_.pop_result(options_.timeout); })) {
      if (result->failure) throw WorkerException(result->failure);
      if (!result->batch) continue;
      ask();
      return std::move(result->batch);
    }
    return std::nullopt;
  }

  FullDataLoaderOptions options_;
  Dataset dataset_;
  Sampler sampler_;
  size_t job_count_ = 0;  // in this epoch
  detail::DataShuttle<Job, Result> shuttle_;
  std::unique_ptr<detail::sequencers::Sequencer<Result>> sequencer_;
  bool joined_ = false;
  std::vector<std::thread> threads_;  // declared last, so that they end before what they read
};
template <class Dataset, class Sampler>
using StatelessDataLoader = DataLoader<Dataset, Sampler>;
template <class Dataset>
using StatefulDataLoader = DataLoader<Dataset, detail::NoSampler>;

template <class Dataset, class Sampler>
  requires(!Dataset::is_stateful)
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                                        Sampler sampler,
                                                                        DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(
      std::move(dataset), std::move(sampler), std::move(options));
}
// Creates the sampler for the size of the data set.
template <class Sampler = samplers::RandomSampler, class Dataset>
  requires(!Dataset::is_stateful)
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  std::optional<size_t> size = dataset.size();
  LAMELLA_CHECK(size, "DataLoader: expected a data set that knows its size, or a sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}
// A data set that keeps its own position has no sampler.
template <class Dataset>
  requires(Dataset::is_stateful)
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), detail::NoSampler(),
                                                       std::move(options));
}

}  // namespace lamella::data
