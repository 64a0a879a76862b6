// The guard around every call into oneDNN, OpenBLAS and LAPACK: Note [Threads of the libraries].
#pragma once

namespace lamella::blas {

// Guards one call: forks and the end of the process wait for it. Meanwhile OpenMP uses one thread;
// OpenBLAS always does.
class LibraryCall {
 public:
  LibraryCall();
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

 private:
  int openmp_before_;
};

void close_library();

}  // namespace lamella::blas
