// Implementation of LibraryCall, and the handlers for forks and the end of the process.
#include "lamella/kernels/blas/library_call.h"

#include <pthread.h>
#include <unistd.h>

// Declared here because omp.h belongs to one compiler, and other compilers' tools cannot read it.
extern "C" int omp_get_max_threads(void);
extern "C" void omp_set_num_threads(int threads);

namespace lamella::blas {
namespace {

// Calls hold it for reading; a fork, or the end of the process, for writing. Writers have priority,
// because threads that keep calling would otherwise block a fork for ever.
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

// Registered when the library is loaded, after the handlers of its dependencies, so that it runs
// before them when a fork begins.
__attribute__((constructor)) void prepare() {
  make_gate();
  pthread_atfork([] { pthread_rwlock_wrlock(&gate); }, [] { pthread_rwlock_unlock(&gate); },
                 [] { make_gate(); });
}

}  // namespace

LibraryCall::LibraryCall() : openmp_before_(omp_get_max_threads()) {
  pthread_rwlock_rdlock(&gate);
  if (closed && pthread_equal(closer, pthread_self()) == 0) {
    pthread_rwlock_unlock(&gate);
    while (true) pause();
  }
  if (openmp_before_ != 1) omp_set_num_threads(1);
}
LibraryCall::~LibraryCall() {
  if (openmp_before_ != 1) omp_set_num_threads(openmp_before_);
  pthread_rwlock_unlock(&gate);
}

void close_library() {
  pthread_rwlock_wrlock(&gate);
  closer = pthread_self();
  closed = true;
  pthread_rwlock_unlock(&gate);
}

}  // namespace lamella::blas
