// See library_call.h.
#include "lamella/kernels/blas/library_call.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace lamella::blas {
namespace {

// Calls hold it for reading; a fork, or the end of the process, for writing. Writers go first, or
// threads that call without end would keep a fork waiting.
pthread_rwlock_t gate;
bool closed = false;  // guarded by the gate
pthread_t closer;

void make_gate() {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&gate, &attributes);
  pthread_rwlockattr_destroy(&attributes);
}

constexpr int kMostOpenBlasThreads = 64;
thread_local int wanted_threads = 1;
// How many threads OpenBLAS was told to use, and how many it was seen to get. It is told 1 again
// after each call, so that it never starts threads in a child, where it has none.
std::mutex counting;
int told = 1, proven = 1;
bool is_child = false;

// OpenBLAS ends the process, or waits for ever, where the system refuses it a thread: so as many as
// it will make are made first.
bool can_make(int threads) {
  std::vector<pthread_t> made;
  pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&hold);
  auto wait = [](void* held) -> void* {
    pthread_mutex_lock(static_cast<pthread_mutex_t*>(held));
    pthread_mutex_unlock(static_cast<pthread_mutex_t*>(held));
    return nullptr;
  };
  bool enough = true;
  for (int i = 1; i < threads && enough; ++i) {
    pthread_t thread;
    enough = pthread_create(&thread, nullptr, wait, &hold) == 0;
    if (enough) made.push_back(thread);
  }
  pthread_mutex_unlock(&hold);
  for (pthread_t thread : made) pthread_join(thread, nullptr);
  return enough;
}

void tell_openblas(int threads) {
  std::lock_guard<std::mutex> lock(counting);
  if (threads > proven) {
    if (is_child || !can_make(threads)) return;
    proven = threads;
  }
  if (threads != told) openblas_set_num_threads(threads);
  told = threads;
}

// Registered when the library is loaded, after the handlers of what it is linked with, so that it
// comes before them when a fork begins.
__attribute__((constructor)) void prepare() {
  make_gate();
  pthread_atfork([] { pthread_rwlock_wrlock(&gate); },
                 [] {
                   proven = 1;  // OpenBLAS has ended its threads for the fork
                   pthread_rwlock_unlock(&gate);
                 },
                 [] {
                   make_gate();
                   is_child = true;
                   proven = 1;
                 });
}

}  // namespace

LibraryCall::LibraryCall(bool many)
    : openmp_before_(omp_get_max_threads()), many_(many && wanted_threads > 1) {
  pthread_rwlock_rdlock(&gate);
  if (closed && pthread_equal(closer, pthread_self()) == 0) {
    pthread_rwlock_unlock(&gate);
    while (true) pause();
  }
  if (openmp_before_ != 1) omp_set_num_threads(1);
  if (many_) tell_openblas(wanted_threads);
}
LibraryCall::~LibraryCall() {
  if (many_) tell_openblas(1);
  if (openmp_before_ != 1) omp_set_num_threads(openmp_before_);
  pthread_rwlock_unlock(&gate);
}

void set_threads(int threads) { wanted_threads = std::min(threads, kMostOpenBlasThreads); }

void close_library() {
  pthread_rwlock_wrlock(&gate);
  closer = pthread_self();
  closed = true;
  pthread_rwlock_unlock(&gate);
}

}  // namespace lamella::blas
