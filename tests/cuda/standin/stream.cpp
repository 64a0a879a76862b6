// Streams and events: a thread for each stream, which executes its work in order, late if asked.
#include "tests/cuda/standin/standin.h"

namespace standin {

void Stream::enqueue(Work work) {
  if (capture_work(*this, work)) return;
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
void Stream::hold(bool held) {
  {
    std::lock_guard lock(mutex_);
    held_ = held;
  }
  arrived_.notify_one();
}
void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return queue_.empty() && !busy_; });
}
void Stream::run() {
  const std::chrono::microseconds delay(number_of("LAMELLA_STANDIN_DELAY_US", 0));
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return !held_ && !queue_.empty(); });
    std::function<int()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    if (delay.count() != 0) std::this_thread::sleep_for(delay);
    if (device_->failed == 0) {
      int result = note_call("work");
      if (result == kSuccess) result = work();
      if (result != kSuccess) device_->failed = result;
    } else {
      work();  // events are reached all the same
    }
    work = nullptr;
    lock.lock();
    busy_ = false;
    if (queue_.empty()) done_.notify_all();
  }
}

Stream* Device::stream(void* handle) {
  if (handle != nullptr) return static_cast<Stream*>(handle);
  std::lock_guard lock(mutex);
  if (default_stream == nullptr) default_stream = std::make_unique<Stream>(this);
  return default_stream.get();
}
std::vector<Stream*> Device::all() {
  std::lock_guard lock(mutex);
  std::vector<Stream*> result = streams;
  if (default_stream != nullptr) result.push_back(default_stream.get());
  return result;
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
  auto capture = capture_of(stream);
  auto mark = std::make_shared<Mark>();
  {
    std::lock_guard lock(mutex_);
    mark_ = mark;
    capture_ = capture;
    captured_ = &stream;
  }
  if (capture != nullptr) return;
  stream.enqueue([mark] {
    std::lock_guard lock(mark->mutex);
    mark->time = std::chrono::steady_clock::now();
    mark->done = true;
    mark->reached.notify_all();
    return 0;
  });
}
int Event::wait(Stream& stream) {
  auto mark = this->mark();
  if (mark == nullptr) return kSuccess;
  if (capture_ != nullptr || capture_of(stream) != nullptr) {
    return capture_wait(stream, captured_, capture_);
  }
  stream.enqueue([mark] {
    mark->wait();
    return 0;
  });
  return kSuccess;
}
bool Event::is_captured() {
  std::lock_guard lock(mutex_);
  return capture_ != nullptr;
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
bool Event::elapsed(Event& later, float* milliseconds) {
  auto from = mark(), to = later.mark();
  if (from == nullptr || to == nullptr || !timing_ || !later.timing_) return false;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return true;
}

}  // namespace standin
