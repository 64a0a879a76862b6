// What a DataLoader and its threads exchange: a queue, a shuttle of jobs and results, and the
// order in which results are taken.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lamella/core/error.h"

namespace lamella::data::detail {

// Values in the order in which any thread pushed them.
template <class T>
class Queue {
 public:
  void push(T value) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      values_.push_back(std::move(value));
    }
    pushed_.notify_one();
  }
  // Waits for a value; error after `timeout`.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto is_ready = [&] { return !values_.empty(); };
    if (timeout) {
      LAMELLA_CHECK(pushed_.wait_for(lock, *timeout, is_ready), "DataLoader: expected a batch in ",
                    timeout->count(), " ms, got none: Timeout");
    } else {
      pushed_.wait(lock, is_ready);
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  // Removes all values and returns their number.
  size_t clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t count = values_.size();
    values_.clear();
    return count;
  }

 private:
  std::deque<T> values_;
  std::mutex mutex_;
  std::condition_variable pushed_;
};

// Jobs for threads, and their results. One thread pushes jobs and pops results.
template <class Job, class Result>
class DataShuttle {
 public:
  void push_job(Job job) {
    jobs_.push(std::move(job));
    ++in_flight_jobs_;
  }
  void push_result(Result result) { results_.push(std::move(result)); }
  Job pop_job() { return jobs_.pop(); }
  // Nullopt if all jobs are answered.
  std::optional<Result> pop_result(
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    if (in_flight_jobs_ == 0) return std::nullopt;
    Result result = results_.pop(timeout);
    --in_flight_jobs_;
    return result;
  }
  // Drops the jobs that no thread has taken, and the results of the others, after waiting for them.
  void drain() {
    in_flight_jobs_ -= jobs_.clear();
    while (pop_result()) {
    }
  }
  // The jobs without a popped result.
  size_t in_flight_jobs() const noexcept { return in_flight_jobs_; }

 private:
  Queue<Job> jobs_;
  Queue<Result> results_;
  size_t in_flight_jobs_ = 0;
};

// The order of results: as the producer gives them, or by their field sequence_number.
namespace sequencers {

template <class Result>
struct Sequencer {
  using ResultProducer = std::function<std::optional<Result>()>;
  virtual ~Sequencer() = default;
  virtual std::optional<Result> next(ResultProducer producer) = 0;
};

template <class Result>
struct NoSequencer final : Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  std::optional<Result> next(ResultProducer producer) override { return producer(); }
};

// Keeps up to `max_jobs` results that come too early.
template <class Result>
struct OrderedSequencer : Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  explicit OrderedSequencer(size_t max_jobs) : buffer_(max_jobs) {}
  std::optional<Result> next(ResultProducer producer) override {
    std::optional<Result>& kept = slot(next_sequence_number_);
    while (!kept) {
      std::optional<Result> result = producer();
      if (!result) return std::nullopt;
      slot(result->sequence_number) = std::move(result);
    }
    ++next_sequence_number_;
    return std::exchange(kept, std::nullopt);
  }

  size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;

 private:
  std::optional<Result>& slot(size_t number) { return buffer_[number % buffer_.size()]; }
};

}  // namespace sequencers
}  // namespace lamella::data::detail
