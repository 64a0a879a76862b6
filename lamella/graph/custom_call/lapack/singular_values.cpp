// Singular value decompositions.
#include <algorithm>

#include "lamella/graph/custom_call/lapack/call.h"
#include "lamella/graph/custom_call/lapack/handlers.h"

namespace lamella::hlo::lapack {
namespace {

// The arguments of both routines. Mode 'A' computes all of u and vt, 'S' their first min(m, n)
// columns and rows, and 'N' neither: their results are zeros.
template <class T>
struct Problem {
  char mode;
  Matrices<T> a;
  Vectors<Real<T>> s;
  Matrices<T> u, vt;
  Int* info;
  Int lda, ldu, ldvt;

  explicit Problem(const LapackCall& call)
      : mode(call.letter("mode", "ASN")),
        a(call.taken_matrices<T>(0, 0)),
        s(call.result_vectors<Real<T>>(1, least())),
        u(call.result_matrices<T>(2)),
        vt(call.result_matrices<T>(3)),
        info(call.info(4)),
        lda(a.leading()),
        ldu(u.leading()),
        ldvt(vt.leading()) {
    if (mode == 'N') {
      std::fill_n(u.data, u.elements(), T());
      std::fill_n(vt.data, vt.elements(), T());
      return;
    }
    call.result_matrices<T>(2, a.rows, mode == 'A' ? a.rows : least());
    call.result_matrices<T>(3, mode == 'A' ? a.columns : least(), a.columns);
  }
  Int least() const { return std::min(a.rows, a.columns); }
  Int most() const { return std::max(a.rows, a.columns); }

  // Calls routine(a, s, u, vt, work, count, info) for each matrix.
  template <class Routine>
  void run(Routine&& routine) {
    Int asked = 0;
    Work<T> work(
        [&](T* space, const Int* count) {
          routine(a.data, s.data, u.data, vt.data, space, count, &asked);
        },
        most());
    for (int64_t i = 0; i < a.batch; ++i) {
      if (!all_finite(a.at(i), static_cast<size_t>(a.rows) * static_cast<size_t>(a.columns))) {
        info[i] = -4;
        std::fill_n(s.at(i), least(), not_a_number<Real<T>>());
        if (mode == 'N') continue;
        std::fill_n(u.at(i), u.rows * u.columns, not_a_number<T>());
        std::fill_n(vt.at(i), vt.rows * vt.columns, not_a_number<T>());
        continue;
      }
      Spacious<T> operand = a.spacious(i), left = u.spacious(i), right = vt.spacious(i);
      routine(operand.data(), s.at(i), left.data(), right.data(), work.data(), work.count(),
              info + i);
      operand.copy_back();
      left.copy_back();
      right.copy_back();
    }
  }
};

}  // namespace

template <class T>
void gesdd(const ffi::CallFrame& frame) {
  Problem<T> p(LapackCall(frame, 1, 5));
  require_countable(4.0 * p.least() * p.least() + 130.0 * (p.a.rows + double(p.a.columns)));
  auto least = static_cast<size_t>(p.least()), most = static_cast<size_t>(p.most());
  std::vector<Int> whole(8 * least + 1);
  // The size of rwork that the documentation of cgesdd requires for any job.
  size_t reals = std::max(5 * least * least + 7 * least, 2 * least * (most + least) + least);
  std::vector<Real<T>> real(is_complex<T> ? reals + 1 : 1);
  p.run([&](T* a, Real<T>* s, T* u, T* vt, T* work, const Int* count, Int* said) {
    if constexpr (is_complex<T>) {
      Routines<T>::gesdd(&p.mode, &p.a.rows, &p.a.columns, a, &p.lda, s, u, &p.ldu, vt, &p.ldvt,
                         work, count, real.data(), whole.data(), said, 1);
    } else {
      Routines<T>::gesdd(&p.mode, &p.a.rows, &p.a.columns, a, &p.lda, s, u, &p.ldu, vt, &p.ldvt,
                         work, count, whole.data(), said, 1);
    }
  });
}
LAMELLA_FOR_FOUR_TYPES(gesdd)

template <class T>
void gesvd(const ffi::CallFrame& frame) {
  Problem<T> p(LapackCall(frame, 1, 5));
  std::vector<Real<T>> real(is_complex<T> ? 5 * static_cast<size_t>(p.least()) + 1 : 1);
  p.run([&](T* a, Real<T>* s, T* u, T* vt, T* work, const Int* count, Int* said) {
    if constexpr (is_complex<T>) {
      Routines<T>::gesvd(&p.mode, &p.mode, &p.a.rows, &p.a.columns, a, &p.lda, s, u, &p.ldu, vt,
                         &p.ldvt, work, count, real.data(), said, 1, 1);
    } else {
      Routines<T>::gesvd(&p.mode, &p.mode, &p.a.rows, &p.a.columns, a, &p.lda, s, u, &p.ldu, vt,
                         &p.ldvt, work, count, said, 1, 1);
    }
  });
}
LAMELLA_FOR_FOUR_TYPES(gesvd)

}  // namespace lamella::hlo::lapack
