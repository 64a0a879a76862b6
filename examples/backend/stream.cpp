// The threads behind the streams and events of stream.h.
#include "stream.h"

#include <cstdlib>

namespace sim {

namespace {
// SIM_DELAY_US delays the start of each piece of work, which reveals missing synchronisation.
std::chrono::microseconds delay() {
  const char* text = std::getenv("SIM_DELAY_US");
  return std::chrono::microseconds(text != nullptr ? std::atol(text) : 0);
}
}  // namespace

Stream::Stream() : thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void Stream::enqueue(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  arrived_.notify_one();
}

bool Stream::idle() {
  std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void Stream::run() {
  const std::chrono::microseconds wait = delay();
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return !queue_.empty() || ending_; });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    if (wait.count() != 0) std::this_thread::sleep_for(wait);
    work();
    work = nullptr;
    lock.lock();
    busy_ = false;
    if (queue_.empty()) done_.notify_all();
  }
}

void Event::Mark::wait() {
  std::unique_lock lock(mutex);
  reached.wait(lock, [this] { return done; });
}

std::shared_ptr<Event::Mark> Event::mark() {
  std::lock_guard lock(mutex_);
  return mark_;
}

void Event::record(Stream& stream) {
  auto mark = std::make_shared<Mark>();
  {
    std::lock_guard lock(mutex_);
    mark_ = mark;
  }
  stream.enqueue([mark] {
    std::lock_guard lock(mark->mutex);
    mark->time = std::chrono::steady_clock::now();
    mark->done = true;
    mark->reached.notify_all();
  });
}

void Event::wait(Stream& stream) {
  if (auto mark = this->mark()) stream.enqueue([mark] { mark->wait(); });
}

bool Event::done() {
  auto mark = this->mark();
  if (mark == nullptr) return true;
  std::lock_guard lock(mark->mutex);
  return mark->done;
}

void Event::synchronize() {
  if (auto mark = this->mark()) mark->wait();
}

double Event::elapsed_until(Event& later) {
  auto from = mark(), to = later.mark();
  if (from == nullptr || to == nullptr) return 0;
  from->wait();
  to->wait();
  return std::chrono::duration<double, std::milli>(to->time - from->time).count();
}

}  // namespace sim
