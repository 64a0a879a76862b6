// Transfers: the queues between a running program and the host.
//
// Note [Transfers]
//   Infeed reads one queue of a device, and outfeed writes another. Send and recv use the queues of
//   their channel, one in each direction. A send that is not for the host is received by a recv of
//   the same channel on the same device. A program that finds its queue empty waits for the time
//   given to `set_patience`, by default zero, and then fails; so a program without input reports an
//   error instead of hanging.
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

// A thread-safe first-in, first-out queue.
class TransferQueue {
 public:
  void put(Literal literal);
  // Takes the oldest literal; nullopt if none arrives in this time.
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
  // The queues of a channel: literals that programs send, and literals that the host sends.
  TransferQueue& from_program(int64_t channel);
  TransferQueue& to_program(int64_t channel);
  // How long a program waits for a literal.
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
// The queues of a device. They are made on first use and live as long as the process.
Transfers& transfers(int32_t device_ordinal = 0);

}  // namespace lamella::hlo
