// Each thread's error text.
#include "lamella/core/error.h"

#include <string>

namespace {

// Destroyed with its thread; a failure in a later destructor of the thread keeps its kind only.
struct ErrorText {
  std::string text;
  bool lost = false;
  ~ErrorText() { ended = true; }
  static thread_local bool ended;
};
thread_local bool ErrorText::ended = false;

ErrorText& error_text() {
  static thread_local ErrorText instance;
  return instance;
}

}  // namespace

extern "C" {

lamella_status lamella_fail(lamella_status kind, const char* text, size_t size) noexcept {
  if (ErrorText::ended) return kind;
  ErrorText& error = error_text();
  try {
    error.text.assign(text, size);
    error.lost = false;
  } catch (...) {  // no memory for the text
    error.lost = true;
  }
  return kind;
}

const char* lamella_error_text(void) noexcept {
  if (ErrorText::ended || error_text().lost) return "error text lost: out of memory";
  return error_text().text.c_str();
}

}  // extern "C"
