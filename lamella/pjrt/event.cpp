// Events: setting them, waiting for them, and callbacks.
#include "lamella/pjrt/event.h"

#include "lamella/pjrt/functions.h"

namespace lamella::pjrt {

struct Event {
  CompletionPointer of;
};

void Completion::set(Status status) {
  std::vector<std::function<void(const Status&)>> waiting;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ready()) return;
    status_ = std::move(status);
    ready_.store(true, std::memory_order_release);
    waiting.swap(waiting_);
    changed_.notify_all();
  }
  for (const auto& f : waiting) f(status_);
}
const Status& Completion::wait() {
  if (!ready()) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ready(); });
  }
  return status_;
}
void Completion::then(std::function<void(const Status&)> f) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ready()) {
      waiting_.push_back(std::move(f));
      return;
    }
  }
  f(status_);
}

Event* ready_event() {
  // One object for all, so that small programs allocate no events.
  static Event event;
  return &event;
}
Event* make_event(CompletionPointer of) {
  if (of == nullptr || (of->ready() && of->status().ok())) return ready_event();
  return new Event{std::move(of)};
}

void event_destroy(EventDestroyArgs& args) {
  if (args.event != ready_event()) delete args.event;
}
void event_is_ready(EventIsReadyArgs& args) {
  const Completion* of = args.event->of.get();
  args.is_ready = of == nullptr || of->ready();
}
void event_error(EventErrorArgs& args) {
  const Completion* of = args.event->of.get();
  if (of == nullptr) return;
  require(of->ready(), "PJRT_Event_Error: expected an event that is ready");
  check(of->status());
}
void event_await(EventAwaitArgs& args) {
  // The caller may destroy the event meanwhile.
  CompletionPointer of = args.event->of;
  if (of != nullptr) check(of->wait());
}
void event_on_ready(EventOnReadyArgs& args) {
  ReadyCallback callback = args.callback;
  void* user = args.user;
  if (args.event->of == nullptr) return callback(nullptr, user);
  args.event->of->then([=](const Status& status) { callback(make_error(status), user); });
}
void event_create(EventCreateArgs& args) { args.event = new Event{std::make_shared<Completion>()}; }
void event_set(EventSetArgs& args) {
  require(args.event->of != nullptr, "PJRT_Event_Set: expected an event of PJRT_Event_Create");
  args.event->of->set({args.code, text_of(args.message)});
}

}  // namespace lamella::pjrt
