// Queues between programs and the host.
#include "lamella/graph/runtime/transfer.h"

#include <utility>

namespace lamella::hlo {

void TransferQueue::put(Literal literal) {
  {
    std::lock_guard lock(mutex_);
    literals_.push_back(std::move(literal));
  }
  came_.notify_one();
}

std::optional<Literal> TransferQueue::take(std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, patience, [this] { return !literals_.empty(); })) return std::nullopt;
  Literal first = std::move(literals_.front());
  literals_.pop_front();
  return first;
}

size_t TransferQueue::size() const {
  std::lock_guard lock(mutex_);
  return literals_.size();
}

void TransferQueue::clear() {
  std::lock_guard lock(mutex_);
  literals_.clear();
}

TransferQueue& Transfers::from_program(int64_t channel) {
  std::lock_guard lock(mutex_);
  return from_program_[channel];
}

TransferQueue& Transfers::to_program(int64_t channel) {
  std::lock_guard lock(mutex_);
  return to_program_[channel];
}

void Transfers::set_patience(std::chrono::nanoseconds patience) {
  std::lock_guard lock(mutex_);
  patience_ = patience;
}

std::chrono::nanoseconds Transfers::patience() const {
  std::lock_guard lock(mutex_);
  return patience_;
}

void Transfers::clear() {
  infeed_.clear();
  outfeed_.clear();
  std::lock_guard lock(mutex_);
  for (auto& [channel, queue] : from_program_) queue.clear();
  for (auto& [channel, queue] : to_program_) queue.clear();
}

Transfers& transfers(int32_t device_ordinal) {
  static auto* mutex = new std::mutex;
  static auto* devices = new std::map<int32_t, Transfers>;
  std::lock_guard lock(*mutex);
  return (*devices)[device_ordinal];
}

}  // namespace lamella::hlo
