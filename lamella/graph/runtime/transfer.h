// Transfers: what a program and the host hand to each other while the program runs.
//
// Note [Transfers]
//   Infeed takes from one queue of a device and outfeed adds to another; send and recv do so for
//   the queues of their channel, one in each direction. A send that is not meant for the host is
//   taken by a recv of the same channel on the same device. A program that finds nothing waits as
//   long as `set_patience` says, by default not at all, and then fails; so a program whose host
//   forgot to feed it says so instead of hanging.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "lamella/graph/hlo/literal.h"

namespace lamella::hlo {

// First in, first out. Threads may use it at once.
class TransferQueue {
 public:
  void put(Literal literal);
  // The first, or nothing if none comes in this time.
  std::optional<Literal> take(std::chrono::nanoseconds patience = {});
  size_t size() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Literal> literals_;
};

// The queues of one device.
class Transfers {
 public:
  TransferQueue& infeed() { return infeed_; }
  TransferQueue& outfeed() { return outfeed_; }
  // What programs send on a channel, and what they receive from the host.
  TransferQueue& from_program(int64_t channel);
  TransferQueue& to_program(int64_t channel);
  // How long a program waits for what it takes.
  void set_patience(std::chrono::nanoseconds patience);
  std::chrono::nanoseconds patience() const;
  // Empties all queues.
  void clear();

 private:
  mutable std::mutex mutex_;
  std::chrono::nanoseconds patience_{};
  TransferQueue infeed_, outfeed_;
  std::map<int64_t, TransferQueue> from_program_, to_program_;
};
// Made when first asked for; lives as long as the process.
Transfers& transfers(int32_t device_ordinal = 0);

}  // namespace lamella::hlo
