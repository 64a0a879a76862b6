// DataLoader: iterates over the batches of a data set, which worker threads may read ahead.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "lamella/nn/data/samplers.h"
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

// Threads that turn requests into batches.
template <class Request, class Batch>
class BatchTeam {
 public:
  using Read = std::function<std::optional<Batch>(Request)>;
  explicit BatchTeam(std::vector<Read> readers) {
    for (Read& read : readers) {
      threads_.emplace_back([this, read = std::move(read)] { work(read); });
    }
  }
  BatchTeam(const BatchTeam&) = delete;
  BatchTeam& operator=(const BatchTeam&) = delete;
  ~BatchTeam() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      waiting_.clear();
    }
    asked_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  size_t pending() const { return pending_; }
  void ask(Request request) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      waiting_.emplace(asked_count_++, std::move(request));
    }
    ++pending_;
    asked_.notify_one();
  }
  // The next batch in the order of the requests, or any finished one. An exception of a worker is
  // rethrown as a WorkerException; Error after `timeout`.
  std::optional<Batch> get(bool ordered, std::optional<std::chrono::milliseconds> timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto is_ready = [&] { return ordered ? done_.count(given_count_) != 0 : !done_.empty(); };
    if (timeout) {
      LAMELLA_CHECK(answered_.wait_for(lock, *timeout, is_ready),
                    "DataLoader: expected a batch in ", timeout->count(), " ms, got none");
    } else {
      answered_.wait(lock, is_ready);
    }
    auto found = ordered ? done_.find(given_count_) : done_.begin();
    Answer answer = std::move(found->second);
    done_.erase(found);
    ++given_count_;
    --pending_;
    if (answer.failure) throw WorkerException(answer.failure);
    return std::move(answer.batch);
  }
  // Drops the pending requests, after waiting for the batches that are being read.
  void drain() {
    std::unique_lock<std::mutex> lock(mutex_);
    pending_ -= waiting_.size();
    waiting_.clear();
    answered_.wait(lock, [&] { return done_.size() == pending_; });
    done_.clear();
    pending_ = 0;
    given_count_ = asked_count_;
  }

 private:
  struct Answer {
    std::optional<Batch> batch;
    std::exception_ptr failure;
  };
  void work(const Read& read) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      asked_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      auto first = waiting_.begin();
      const size_t number = first->first;
      Request request = std::move(first->second);
      waiting_.erase(first);
      lock.unlock();
      Answer answer;
      try {
        answer.batch = read(std::move(request));
      } catch (...) {
        answer.failure = std::current_exception();
      }
      lock.lock();
      done_.emplace(number, std::move(answer));
      answered_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable asked_, answered_;
  std::map<size_t, Request> waiting_;
  std::map<size_t, Answer> done_;
  size_t asked_count_ = 0, given_count_ = 0;
  size_t pending_ = 0;  // requests without a delivered answer; only the reader uses it
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

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

  DataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : options_(std::move(options)), dataset_(std::move(dataset)), sampler_(std::move(sampler)) {
    LAMELLA_CHECK_VALUE(options_.batch_size() > 0,
                        "DataLoader: expected 'batch_size' to be at least 1, got 0");
    if (options_.workers() == 0) return;
    std::vector<typename Team::Read> readers;
    for (size_t i = 0; i < options_.workers(); ++i) {
      if constexpr (Dataset::is_stateful) {
        readers.push_back([this](Request request) { return read(dataset_, request); });
      } else {
        auto own = std::make_shared<Dataset>(dataset_);
        readers.push_back([own](Request request) { return read(*own, request); });
      }
    }
    team_ = std::make_unique<Team>(std::move(readers));
  }
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Iterates over the batches once; begin() starts an epoch.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = BatchType;
    using pointer = BatchType*;
    using reference = BatchType&;
    using iterator_category = std::input_iterator_tag;
    explicit Iterator(DataLoader* loader = nullptr) : loader_(loader) { ++*this; }
    Iterator& operator++() {
      if (loader_ != nullptr) batch_ = loader_->next();
      if (!batch_) loader_ = nullptr;
      return *this;
    }
    BatchType& operator*() {
      LAMELLA_CHECK(batch_, "DataLoader: expected an iterator before the end");
      return *batch_;
    }
    BatchType* operator->() { return &**this; }
    // Two iterators are equal if both are at the end or both belong to one loader.
    bool operator==(const Iterator& other) const { return loader_ == other.loader_; }

   private:
    DataLoader* loader_;
    std::optional<BatchType> batch_;
  };
  Iterator begin() {
    LAMELLA_CHECK(!joined_, "DataLoader: expected begin() before join()");
    reset();
    return Iterator(this);
  }
  Iterator end() { return Iterator(); }
  // Ends the threads. The loader yields no batches afterwards.
  void join() {
    team_.reset();
    joined_ = true;
  }
  const DataLoaderOptions& options() const noexcept { return options_; }

 private:
  using Team = detail::BatchTeam<Request, BatchType>;

  static std::optional<BatchType> read(Dataset& dataset, const Request& request) {
    return dataset.get_batch(request);
  }
  std::optional<Request> next_request() {
    if constexpr (Dataset::is_stateful) {
      return options_.batch_size();
    } else {
      std::optional<Request> request = sampler_.next(options_.batch_size());
      if (request && options_.drop_last() && size_of(*request) < options_.batch_size()) return {};
      return request;
    }
  }
  static size_t size_of(size_t request) { return request; }
  template <class List>
  static size_t size_of(const List& request) {
    return request.size();
  }
  void reset() {
    if (team_ != nullptr) team_->drain();
    if constexpr (Dataset::is_stateful) {
      dataset_.reset();
    } else {
      sampler_.reset(std::nullopt);
    }
    if (team_ == nullptr) return;
    size_t ahead = options_.max_jobs() ? *options_.max_jobs() : 2 * options_.workers();
    for (size_t i = 0; i < std::max<size_t>(ahead, 1); ++i) ask();
  }
  void ask() {
    if (std::optional<Request> request = next_request()) team_->ask(std::move(*request));
  }
  std::optional<BatchType> next() {
    if (team_ == nullptr) {
      std::optional<Request> request = next_request();
      return request ? read(dataset_, *request) : std::nullopt;
    }
    while (team_->pending() > 0) {
      std::optional<BatchType> batch = team_->get(options_.enforce_ordering(), options_.timeout());
      if (batch) {
        ask();
        return batch;
      }
    }
    return std::nullopt;
  }

  DataLoaderOptions options_;
  Dataset dataset_;
  Sampler sampler_;
  std::unique_ptr<Team> team_;  // declared last, so that it ends before what it reads
  bool joined_ = false;
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
