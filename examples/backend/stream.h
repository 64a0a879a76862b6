// Streams and events of a device: a stream is a thread that executes its work asynchronously, in
// order.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace sim {

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Finishes the pending work.
  ~Stream();

  void enqueue(std::function<void()> work);
  bool idle();
  void synchronize();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable arrived_, done_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

// A mark in a stream. Recording it again moves it.
class Event {
 public:
  void record(Stream& stream);
  // The stream waits for the event.
  void wait(Stream& stream);
  bool done();
  void synchronize();
  // Milliseconds from this event to a later one.
  double elapsed_until(Event& later);

 private:
  struct Mark {
    std::mutex mutex;
    std::condition_variable reached;
    bool done = false;
    std::chrono::steady_clock::time_point time;
    void wait();
  };
  std::shared_ptr<Mark> mark();

  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;  // null: never recorded
};

}  // namespace sim
