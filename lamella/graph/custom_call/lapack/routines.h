// LAPACK and BLAS Fortran routines: for each element type one name per routine.
#pragma once
#include <complex>
#include <cstddef>
#include <type_traits>

namespace lamella::hlo::lapack {

using Int = int;
using Length = std::size_t;  // the hidden length argument of a Fortran character argument
using c64 = std::complex<float>;
using c128 = std::complex<double>;

// The type of norms and eigenvalues of Hermitian matrices.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool is_complex = !std::is_same_v<Real<T>, T>;

extern "C" {
// Routines with equal signatures for all types. `un` is `or` for real and `un` for complex types;
// `he` is `sy` or `he`.
#define LAMELLA_DECLARE(p, un, he, T, R)                                                          \
  void p##potrf_(const char* uplo, const Int* n, T* a, const Int* lda, Int* info, Length);        \
  void p##getrf_(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);       \
  void p##geqrf_(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work,               \
                 const Int* lwork, Int* info);                                                    \
  void p##un##gqr_(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau,  \
                   T* work, const Int* lwork, Int* info);                                         \
  void p##un##mqr_(const char* side, const char* trans, const Int* m, const Int* n, const Int* k, \
                   const T* a, const Int* lda, const T* tau, T* c, const Int* ldc, T* work,       \
                   const Int* lwork, Int* info, Length, Length);                                  \
  void p##gehrd_(const Int* n, const Int* low, const Int* high, T* a, const Int* lda, T* tau,     \
                 T* work, const Int* lwork, Int* info);                                           \
  void p##he##trd_(const char* uplo, const Int* n, T* a, const Int* lda, R* d, R* e, T* tau,      \
                   T* work, const Int* lwork, Int* info, Length);                                 \
  void p##gtsv_(const Int* n, const Int* columns, T* dl, T* d, T* du, T* b, const Int* ldb,       \
                Int* info);                                                                       \
  void p##trsm_(const char* side, const char* uplo, const char* trans, const char* diag,          \
                const Int* m, const Int* n, const T* alpha, const T* a, const Int* lda, T* b,     \
                const Int* ldb, Length, Length, Length, Length);
LAMELLA_DECLARE(s, or, sy, float, float)
LAMELLA_DECLARE(d, or, sy, double, double)
LAMELLA_DECLARE(c, un, he, c64, float)
LAMELLA_DECLARE(z, un, he, c128, double)
#undef LAMELLA_DECLARE

#define LAMELLA_DECLARE(p, T)                                                                     \
  void p##geqp3_(const Int* m, const Int* n, T* a, const Int* lda, Int* jpvt, T* tau, T* work,    \
                 const Int* lwork, Int* info);                                                    \
  void p##gesdd_(const char* job, const Int* m, const Int* n, T* a, const Int* lda, T* s, T* u,   \
                 const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Int* iwork,   \
                 Int* info, Length);                                                              \
  void p##gesvd_(const char* jobu, const char* jobvt, const Int* m, const Int* n, T* a,           \
                 const Int* lda, T* s, T* u, const Int* ldu, T* vt, const Int* ldvt, T* work,     \
                 const Int* lwork, Int* info, Length, Length);                                    \
  void p##syevd_(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, T* w,     \
                 T* work, const Int* lwork, Int* iwork, const Int* liwork, Int* info, Length,     \
                 Length);                                                                         \
  void p##geev_(const char* jobl, const char* jobr, const Int* n, T* a, const Int* lda, T* wr,    \
                T* wi, T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork, \
                Int* info, Length, Length);                                                       \
  void p##gees_(const char* job, const char* sort, Int (*select)(const T*, const T*),             \
                const Int* n, T* a, const Int* lda, Int* selected, T* wr, T* wi, T* vs,           \
                const Int* ldvs, T* work, const Int* lwork, Int* bwork, Int* info, Length,        \
                Length);
LAMELLA_DECLARE(s, float)
LAMELLA_DECLARE(d, double)
#undef LAMELLA_DECLARE

#define LAMELLA_DECLARE(p, T, R)                                                                \
  void p##geqp3_(const Int* m, const Int* n, T* a, const Int* lda, Int* jpvt, T* tau, T* work,  \
                 const Int* lwork, R* rwork, Int* info);                                        \
  void p##gesdd_(const char* job, const Int* m, const Int* n, T* a, const Int* lda, R* s, T* u, \
                 const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, R* rwork,   \
                 Int* iwork, Int* info, Length);                                                \
  void p##gesvd_(const char* jobu, const char* jobvt, const Int* m, const Int* n, T* a,         \
                 const Int* lda, R* s, T* u, const Int* ldu, T* vt, const Int* ldvt, T* work,   \
                 const Int* lwork, R* rwork, Int* info, Length, Length);                        \
  void p##heevd_(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, R* w,   \
                 T* work, const Int* lwork, R* rwork, const Int* lrwork, Int* iwork,            \
                 const Int* liwork, Int* info, Length, Length);                                 \
  void p##geev_(const char* jobl, const char* jobr, const Int* n, T* a, const Int* lda, T* w,   \
                T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork,      \
                R* rwork, Int* info, Length, Length);                                           \
  void p##gees_(const char* job, const char* sort, Int (*select)(const T*), const Int* n, T* a, \
                const Int* lda, Int* selected, T* w, T* vs, const Int* ldvs, T* work,           \
                const Int* lwork, R* rwork, Int* bwork, Int* info, Length, Length);
LAMELLA_DECLARE(c, c64, float)
LAMELLA_DECLARE(z, c128, double)
#undef LAMELLA_DECLARE
}

template <class T>
struct Routines;
#define LAMELLA_ROUTINES(p, un, he, T)         \
  template <>                                  \
  struct Routines<T> {                         \
    static constexpr auto potrf = p##potrf_;   \
    static constexpr auto getrf = p##getrf_;   \
    static constexpr auto geqrf = p##geqrf_;   \
    static constexpr auto geqp3 = p##geqp3_;   \
    static constexpr auto orgqr = p##un##gqr_; \
    static constexpr auto ormqr = p##un##mqr_; \
    static constexpr auto gehrd = p##gehrd_;   \
    static constexpr auto sytrd = p##he##trd_; \
    static constexpr auto gesdd = p##gesdd_;   \
    static constexpr auto gesvd = p##gesvd_;   \
    static constexpr auto syevd = p##he##evd_; \
    static constexpr auto geev = p##geev_;     \
    static constexpr auto gees = p##gees_;     \
    static constexpr auto gtsv = p##gtsv_;     \
    static constexpr auto trsm = p##trsm_;     \
  };
LAMELLA_ROUTINES(s, or, sy, float)
LAMELLA_ROUTINES(d, or, sy, double)
LAMELLA_ROUTINES(c, un, he, c64)
LAMELLA_ROUTINES(z, un, he, c128)
#undef LAMELLA_ROUTINES

}  // namespace lamella::hlo::lapack
