// Where time goes: the operators, passes and steps of programs that run while a Profile lives.
#pragma once
#include <fstream>
#include <string>

#include "lamella/abi/profiler.h"
#include "lamella/core/error.h"

namespace lamella::profiler {

// Runs from its construction to stop(). See Note [What a profile sees] in lamella/abi/profiler.h.
class Profile {
 public:
  Profile() { detail::check(lamella_profiler_start()); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile() {
    if (profile_ == nullptr) lamella_profiler_stop(&profile_);
    lamella_profile_free(profile_);
  }
  void stop() {
    if (profile_ == nullptr) detail::check(lamella_profiler_stop(&profile_));
  }
  // Both end the profile if it still runs.
  std::string table(const char* sort_by = nullptr, int64_t rows = -1) {
    stop();
    return lamella_profile_table(profile_, sort_by, rows);
  }
  void save(const std::string& path) {
    stop();
    std::ofstream file(path);
    file << lamella_profile_trace(profile_);
    LAMELLA_CHECK(file.good(), "Profile: expected to write '", path, "'");
  }
  template <class F>  // (const lamella_profile_event&)
  void each(F&& f) {
    stop();
    lamella_profile_each(
        profile_,
        [](void* context, const lamella_profile_event* event) {
          (*static_cast<F*>(context))(*event);
        },
        &f);
  }

 private:
  lamella_profile* profile_ = nullptr;
};

// A named range of a profile, from its construction to its end.
class RecordFunction {
 public:
  explicit RecordFunction(const char* name) { lamella_profiler_enter(name); }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;
  ~RecordFunction() { lamella_profiler_leave(); }
};

}  // namespace lamella::profiler
