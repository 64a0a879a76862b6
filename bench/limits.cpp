// The machine's limits: bandwidth of its caches and its memory (the STREAM triad over arrays of
// several sizes, bytes of all three together) and peak float32 arithmetic. Usage: bench_limits
// [THREADS]. Prints one JSON object a line, like the other benchmarks.
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Gives thread i the i-th processor that the process may run on: the system would let new threads
// share one for a while.
void settle(int i) {
#if defined(__linux__)
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) <= i) return;
  CPU_ZERO(&one);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && seen++ == i) CPU_SET(cpu, &one);
  }
  pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
#endif
}

// Runs work(i) on each thread at once, several times; the shortest time from the moment when all
// threads are there to the end of the last one.
double best_time(int threads, int repeats, const std::function<void(int)>& work) {
  double best = 1e9;
  for (int r = 0; r < repeats; ++r) {
    std::atomic<int> missing{threads};
    std::vector<double> begins(static_cast<size_t>(threads)), ends(begins);
    auto run = [&](int i) {
      settle(i);
      --missing;
      while (missing != 0) std::this_thread::yield();
      begins[static_cast<size_t>(i)] = seconds();
      work(i);
      ends[static_cast<size_t>(i)] = seconds();
    };
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(run, i);
    for (auto& thread : all) thread.join();
    best = std::min(best, *std::max_element(ends.begin(), ends.end()) -
                              *std::min_element(begins.begin(), begins.end()));
  }
  return best;
}

#if defined(__x86_64__)
#define EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EACH_CPU
#endif

EACH_CPU void triad(float* a, const float* b, const float* c, float s, long n) {
#pragma GCC ivdep
  for (long i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}

// Twelve independent chains of multiply-adds hide the latency of one.
EACH_CPU float multiply_add(long rounds, float factor) {
  constexpr int kChains = 12, kLanes = 16;
  float sum[kChains][kLanes];
  for (auto& chain : sum) std::fill(chain, chain + kLanes, factor);
  for (long r = 0; r < rounds; ++r) {
    for (auto& chain : sum) {
      for (float& lane : chain) lane = lane * factor + 1.0f;
    }
  }
  float total = 0;
  for (auto& chain : sum) {
    for (float lane : chain) total += lane;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  constexpr long kElements = 20'000'000;
  std::vector<float> a(kElements, 0.f), b(kElements, 1.f), c(kElements, 2.f);
  double time = 0;
  for (long elements : {2'000L, 40'000L, 500'000L, kElements}) {
    long part = elements / threads, rounds = kElements / elements;
    time = best_time(threads, 9, [&](int i) {
      for (long r = 0; r < rounds; ++r) {
        triad(a.data() + i * part, b.data() + i * part, c.data() + i * part, 3.f, part);
      }
    });
    double moved = 12.0 * static_cast<double>(elements * rounds);
    std::printf("{\"row\": \"triad of %ld bytes, GB/s\", \"ns\": %.1f}\n", 12 * elements,
                moved * 1e-9 / time);
  }
  constexpr long kRounds = 10'000'000;
  std::vector<float> results(static_cast<size_t>(threads));
  time = best_time(threads, 5,
                   [&](int i) { results[static_cast<size_t>(i)] = multiply_add(kRounds, 0.5f); });
  std::printf("{\"row\": \"float32 GF/s\", \"ns\": %.1f}\n",
              threads * 2e-9 * 12 * 16 * kRounds / time);
  return results[0] > 1e30f ? 1 : 0;
}
