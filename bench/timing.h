// Timing of short calls: medians over repeats of hot loops, printed as one JSON object a line.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace bench {

// Nanoseconds of one call of `body`.
template <class F>
double median_ns(F&& body, int calls = 20000, int repeats = 101) {
  std::vector<double> times;
  for (int r = 0; r < repeats; ++r) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) body();
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

// Nanoseconds of `body(make())` without what `make` takes.
template <class M, class F>
double median_ns_of(M&& make, F&& body, int repeats = 2001) {
  std::vector<double> times;
  for (int r = 0; r < repeats; ++r) {
    auto made = make();
    auto begin = std::chrono::steady_clock::now();
    body(made);
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<size_t>(repeats) / 2];
}

inline void report(const char* row, double ns) {
  std::printf("{\"row\": \"%s\", \"ns\": %.3f}\n", row, ns);
}

}  // namespace bench
