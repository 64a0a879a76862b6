// Each thread's error text.
//
// Note [Thread ends without the loader's lock]
//   The text is freed by a key of the threads library, not by a thread_local object's destructor:
//   registering one of those takes the loader's lock, and a library that is being unloaded holds
//   that lock while it waits for calls in flight, which may be about to fail for the first time.
#include "lamella/core/error.h"

#include <pthread.h>

#include <new>
#include <string>

namespace {

constexpr const char* kLost = "error text lost: out of memory";

struct ErrorText {
  std::string text;
  bool lost = false;
};
__thread ErrorText* error_text = nullptr;
// Set when the thread ends; a failure in a later destructor of the thread keeps its kind only.
__thread bool ended = false;

void end_thread(void* text) {
  ended = true;
  error_text = nullptr;
  delete static_cast<ErrorText*>(text);
}

// This thread's text, NULL where there can be none any more or no memory for it.
ErrorText* own_text() {
  if (error_text != nullptr || ended) return error_text;
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    // Without a key the text of a thread that ends is leaked, nothing worse.
    if (pthread_key_create(&made, &end_thread) != 0) return static_cast<pthread_key_t>(-1);
    return made;
  }();
  error_text = new (std::nothrow) ErrorText;
  if (error_text != nullptr && key != static_cast<pthread_key_t>(-1)) {
    pthread_setspecific(key, error_text);
  }
  return error_text;
}

}  // namespace

extern "C" {

lamella_status lamella_fail(lamella_status kind, const char* text, size_t size) noexcept {
  ErrorText* error = own_text();
  if (error == nullptr) return kind;
  try {
    error->text.assign(text, size);
    error->lost = false;
  } catch (...) {  // no memory for the text
    error->lost = true;
  }
  return kind;
}

const char* lamella_error_text(void) noexcept {
  ErrorText* error = own_text();
  return error == nullptr || error->lost ? kLost : error->text.c_str();
}

}  // extern "C"
