// What surrounds every call into oneDNN, OpenBLAS and LAPACK: Note [Threads of the libraries].
#pragma once

namespace lamella::blas {

// One call: forks and the end of the process wait for it. OpenMP has one thread meanwhile; OpenBLAS
// as many as were set for this thread, if `many`.
class LibraryCall {
 public:
  explicit LibraryCall(bool many = false);
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

 private:
  int openmp_before_;
  bool many_;
};

void set_threads(int threads);
void close_library();

}  // namespace lamella::blas
