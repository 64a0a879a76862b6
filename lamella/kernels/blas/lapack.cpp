// LAPACK's routines for four dtypes behind one table; allocates their work space.
#include "lamella/kernels/blas/lapack.h"

#include <cblas.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#include "lamella/core/column_to_spare.h"
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/blas/library_call.h"

using lamella::ScalarType;
using lamella::Spacious;
using Int = int;
using Length = std::size_t;  // Fortran's hidden length of a character argument
using c64 = std::complex<float>;
using c128 = std::complex<double>;

#define LAMELLA_FOR_ALL(DECLARE) \
  DECLARE(s, float, float)       \
  DECLARE(d, double, double)     \
  DECLARE(c, c64, float)         \
  DECLARE(z, c128, double)

extern "C" {
#define LAMELLA_DECLARE(p, T, R)                                                            \
  void p##potrf_(const char* uplo, const Int* n, T* a, const Int* lda, Int* info, Length);  \
  void p##getrf_(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info); \
  void p##getrs_(const char* op, const Int* n, const Int* nrhs, const T* a, const Int* lda, \
                 const Int* pivots, T* b, const Int* ldb, Int* info, Length);               \
  void p##geqrf_(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work,         \
                 const Int* lwork, Int* info);
LAMELLA_FOR_ALL(LAMELLA_DECLARE)
#undef LAMELLA_DECLARE
#define LAMELLA_DECLARE(p, T)                                                               \
  void p##trf_(const char* uplo, const Int* n, T* a, const Int* lda, Int* pivots, T* work,  \
               const Int* lwork, Int* info, Length);                                        \
  void p##trs_(const char* uplo, const Int* n, const Int* nrhs, const T* a, const Int* lda, \
               const Int* pivots, T* b, const Int* ldb, Int* info, Length);
LAMELLA_DECLARE(ssy, float)
LAMELLA_DECLARE(dsy, double)
LAMELLA_DECLARE(csy, c64)
LAMELLA_DECLARE(zsy, c128)
LAMELLA_DECLARE(che, c64)
LAMELLA_DECLARE(zhe, c128)
#undef LAMELLA_DECLARE
#define LAMELLA_DECLARE(name, T)                                                             \
  void name##_(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, \
               T* work, const Int* lwork, Int* info);
LAMELLA_DECLARE(sorgqr, float)
LAMELLA_DECLARE(dorgqr, double)
LAMELLA_DECLARE(cungqr, c64)
LAMELLA_DECLARE(zungqr, c128)
#undef LAMELLA_DECLARE
#define LAMELLA_DECLARE(p, T)                                                                     \
  void p##gesdd_(const char* job, const Int* m, const Int* n, T* a, const Int* lda, T* s, T* u,   \
                 const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Int* iwork,   \
                 Int* info, Length);                                                              \
  void p##syevd_(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, T* w,     \
                 T* work, const Int* lwork, Int* iwork, const Int* liwork, Int* info, Length,     \
                 Length);                                                                         \
  void p##geev_(const char* jobl, const char* jobr, const Int* n, T* a, const Int* lda, T* wr,    \
                T* wi, T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork, \
                Int* info, Length, Length);
LAMELLA_DECLARE(s, float)
LAMELLA_DECLARE(d, double)
#undef LAMELLA_DECLARE
#define LAMELLA_DECLARE(p, T, R)                                                                \
  void p##gesdd_(const char* job, const Int* m, const Int* n, T* a, const Int* lda, R* s, T* u, \
                 const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, R* rwork,   \
                 Int* iwork, Int* info, Length);                                                \
  void p##heevd_(const char* job, const char* uplo, const Int* n, T* a, const Int* lda, R* w,   \
                 T* work, const Int* lwork, R* rwork, const Int* lrwork, Int* iwork,            \
                 const Int* liwork, Int* info, Length, Length);                                 \
  void p##geev_(const char* jobl, const char* jobr, const Int* n, T* a, const Int* lda, T* w,   \
                T* vl, const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork,      \
                R* rwork, Int* info, Length, Length);
LAMELLA_DECLARE(c, c64, float)
LAMELLA_DECLARE(z, c128, double)
#undef LAMELLA_DECLARE
}

namespace {

constexpr int32_t kBadType = -1;

// Thrown if a size exceeds LAPACK's integers.
struct TooLarge {};
Int narrow(int64_t value) {
  if (value > std::numeric_limits<Int>::max()) throw TooLarge();
  return static_cast<Int>(value);
}
template <class T>
T* as(void* data) {
  return static_cast<T*>(data);
}
template <class T>
const T* as(const void* data) {
  return static_cast<const T*>(data);
}
// The size of the work space, from a routine's answer to a query.
template <class T>
Int wanted(const T& answer) {
  double count = std::real(answer);
  return std::max<Int>(1, narrow(count < 1e18 ? static_cast<int64_t>(count) : INT64_MAX));
}

// Work space of `count` elements for matrices of up to `rows` rows: Note [A column to spare].
template <class T>
std::vector<T> work_space(Int count, Int rows) {
  return std::vector<T>(static_cast<std::size_t>(count) + static_cast<std::size_t>(rows) + 1);
}

// Calls f with a null pointer of one of the four element types.
template <class F>
int32_t by_type(uint8_t type, F&& f) {
  try {
    lamella::blas::LibraryCall call;
    switch (static_cast<ScalarType>(type)) {
      case ScalarType::Float:
        return f(static_cast<float*>(nullptr));
      case ScalarType::Double:
        return f(static_cast<double*>(nullptr));
      case ScalarType::ComplexFloat:
        return f(static_cast<c64*>(nullptr));
      case ScalarType::ComplexDouble:
        return f(static_cast<c128*>(nullptr));
      default:
        return kBadType;
    }
  } catch (const std::bad_alloc&) {
    return LAMELLA_LAPACK_NO_MEMORY;
  } catch (const TooLarge&) {
    return LAMELLA_LAPACK_TOO_LARGE;
  }
}
template <class T>
struct RealOf {
  using type = T;
  static constexpr bool is_complex = false;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
  static constexpr bool is_complex = true;
};

// One name for the four spellings of a routine.
template <class T>
struct Routines;
#define LAMELLA_ROUTINES(p, T, org, eig)        \
  template <>                                   \
  struct Routines<T> {                          \
    static constexpr auto potrf = p##potrf_;    \
    static constexpr auto getrf = p##getrf_;    \
    static constexpr auto getrs = p##getrs_;    \
    static constexpr auto geqrf = p##geqrf_;    \
    static constexpr auto orgqr = p##org##gqr_; \
    static constexpr auto gesdd = p##gesdd_;    \
    static constexpr auto eigh = p##eig##evd_;  \
    static constexpr auto geev = p##geev_;      \
    static constexpr auto sytrf = p##sytrf_;    \
    static constexpr auto sytrs = p##sytrs_;    \
    static constexpr auto hetrf = p##eig##trf_; \
    static constexpr auto hetrs = p##eig##trs_; \
  };
LAMELLA_ROUTINES(s, float, or, sy)
LAMELLA_ROUTINES(d, double, or, sy)
LAMELLA_ROUTINES(c, c64, un, he)
LAMELLA_ROUTINES(z, c128, un, he)
#undef LAMELLA_ROUTINES

int32_t potrf(uint8_t type, int32_t upper, int64_t n, void* a, int64_t lda) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    Int size = narrow(n), ld = narrow(lda), info = 0;
    Routines<T>::potrf(upper ? "U" : "L", &size, as<T>(a), &ld, &info, 1);
    return info;
  });
}

int32_t getrf(uint8_t type, int64_t m, int64_t n, void* a, int64_t lda, int32_t* pivots) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    Int rows = narrow(m), columns = narrow(n), ld = narrow(lda), info = 0;
    Routines<T>::getrf(&rows, &columns, as<T>(a), &ld, pivots, &info);
    return info;
  });
}

int32_t getrs(uint8_t type, int32_t op, int64_t n, int64_t columns, const void* a, int64_t lda,
              const int32_t* pivots, void* b, int64_t ldb) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    Int size = narrow(n), nrhs = narrow(columns), ld = narrow(lda), ld_b = narrow(ldb), info = 0;
    const char* text = op == 0 ? "N" : op == 1 ? "T" : "C";
    Routines<T>::getrs(text, &size, &nrhs, as<T>(a), &ld, pivots, as<T>(b), &ld_b, &info, 1);
    return info;
  });
}

int32_t geqrf(uint8_t type, int64_t m, int64_t n, void* a, int64_t lda, void* tau) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    Int rows = narrow(m), columns = narrow(n), ld = narrow(lda), info = 0, query = -1;
    T size{};
    Routines<T>::geqrf(&rows, &columns, as<T>(a), &ld, as<T>(tau), &size, &query, &info);
    if (info != 0) return info;
    Int count = wanted(size);
    auto work = work_space<T>(count, std::max(rows, columns));
    Routines<T>::geqrf(&rows, &columns, as<T>(a), &ld, as<T>(tau), work.data(), &count, &info);
    return info;
  });
}

int32_t orgqr(uint8_t type, int64_t m, int64_t n, int64_t k, void* a, int64_t lda,
              const void* tau) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    Int rows = narrow(m), columns = narrow(n), inner = narrow(k), ld = narrow(lda);
    Int info = 0, query = -1;
    T size{};
    Routines<T>::orgqr(&rows, &columns, &inner, as<T>(a), &ld, as<T>(tau), &size, &query, &info);
    if (info != 0) return info;
    Int count = wanted(size);
    auto work = work_space<T>(count, rows);
    Routines<T>::orgqr(&rows, &columns, &inner, as<T>(a), &ld, as<T>(tau), work.data(), &count,
                       &info);
    return info;
  });
}

int32_t gesdd(uint8_t type, char job, int64_t m, int64_t n, void* a, int64_t lda, void* s, void* u,
              int64_t ldu, void* vh, int64_t ldvh) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    using R = typename RealOf<T>::type;
    Int rows = narrow(m), columns = narrow(n), ld = narrow(lda);
    Int ld_u = narrow(ldu), ld_v = narrow(ldvh), info = 0, query = -1;
    // LAPACK itself counts up to about this many elements of work space.
    auto shorter = static_cast<double>(std::min(rows, columns));
    if (4 * shorter * shorter + 130.0 * (double(rows) + double(columns)) > 2147483647.0) {
      throw TooLarge();
    }
    auto size_of = [](Int n) { return static_cast<std::size_t>(n); };
    std::size_t kept = job == 'N' ? 0 : size_of(job == 'A' ? columns : std::min(rows, columns));
    Spacious<T> operand(a, size_of(ld), size_of(columns));
    Spacious<T> left(u, size_of(ld_u), size_of(job == 'A' ? rows : std::min(rows, columns)));
    Spacious<T> right(vh, kept, size_of(columns));
    std::vector<Int> whole(static_cast<std::size_t>(8 * std::min(rows, columns) + 1));
    auto call = [&](T* work, const Int* count, R* real_work) {
      if constexpr (RealOf<T>::is_complex) {
        Routines<T>::gesdd(&job, &rows, &columns, operand.data(), &ld, as<R>(s), left.data(), &ld_u,
                           right.data(), &ld_v, work, count, real_work, whole.data(), &info, 1);
      } else {
        Routines<T>::gesdd(&job, &rows, &columns, operand.data(), &ld, as<R>(s), left.data(), &ld_u,
                           right.data(), &ld_v, work, count, whole.data(), &info, 1);
      }
    };
    std::size_t least = static_cast<std::size_t>(std::min(rows, columns));
    std::size_t most = static_cast<std::size_t>(std::max(rows, columns));
    // What the documentation of cgesdd and zgesdd asks for, for any job.
    std::vector<R> real_work(RealOf<T>::is_complex
                                 ? std::max(5 * least * least + 7 * least,
                                            2 * most * least + 2 * least * least + least) +
                                       1
                                 : 1);
    T size{};
    call(&size, &query, real_work.data());
    if (info != 0) return info;
    Int count = wanted(size);
    auto work = work_space<T>(count, std::max(rows, columns));
    call(work.data(), &count, real_work.data());
    left.copy_back();
    right.copy_back();
    return info;
  });
}

int32_t heevd(uint8_t type, int32_t vectors, int32_t upper, int64_t n, void* a, int64_t lda,
              void* w) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    using R = typename RealOf<T>::type;
    const char* job = vectors ? "V" : "N";
    const char* uplo = upper ? "U" : "L";
    Int size = narrow(n), ld = narrow(lda), info = 0;
    // The work space has 1 + 6 n + 2 n^2 elements, which LAPACK counts itself.
    if (1 + n * (6 + 2 * n) > std::numeric_limits<Int>::max()) throw TooLarge();
    auto rows = static_cast<std::size_t>(size);
    Spacious<T> operand(a, rows, rows);
    auto call = [&](T* work, Int count, R* real_work, Int real_count, Int* whole, Int whole_count) {
      if constexpr (RealOf<T>::is_complex) {
        Routines<T>::eigh(job, uplo, &size, operand.data(), &ld, as<R>(w), work, &count, real_work,
                          &real_count, whole, &whole_count, &info, 1, 1);
      } else {
        Routines<T>::eigh(job, uplo, &size, operand.data(), &ld, as<R>(w), work, &count, whole,
                          &whole_count, &info, 1, 1);
      }
    };
    T wants{};
    R wants_real{};
    Int wants_whole = 0;
    call(&wants, -1, &wants_real, -1, &wants_whole, -1);
    if (info != 0) return info;
    Int count = wanted(wants), real_count = wanted(wants_real),
        whole_count = std::max(1, wants_whole);
    auto work = work_space<T>(count, size);
    std::vector<R> real_work(static_cast<std::size_t>(real_count));
    std::vector<Int> whole(static_cast<std::size_t>(whole_count));
    call(work.data(), count, real_work.data(), real_count, whole.data(), whole_count);
    operand.copy_back();
    return info;
  });
}

int32_t geev(uint8_t type, int64_t n, void* a, int64_t lda, void* w, void* v, int64_t ldv) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    using R = typename RealOf<T>::type;
    const char* job = v != nullptr ? "V" : "N";
    Int size = narrow(n), ld = narrow(lda), one = 1, info = 0, query = -1;
    T wants{};
    if constexpr (RealOf<T>::is_complex) {
      Int ld_v = std::max<Int>(1, narrow(ldv));
      auto rows = static_cast<std::size_t>(size);
      std::vector<R> real_work(2 * rows + 1);
      Spacious<T> operand(a, rows, rows), right(v, rows, rows);
      auto call = [&](T* work, const Int* count) {
        Routines<T>::geev("N", job, &size, operand.data(), &ld, as<T>(w), nullptr, &one,
                          right.data(), &ld_v, work, count, real_work.data(), &info, 1, 1);
      };
      call(&wants, &query);
      if (info != 0) return info;
      Int count = wanted(wants);
      auto work = work_space<T>(count, size);
      call(work.data(), &count);
      right.copy_back();
      return info;
    } else {
      auto rows = static_cast<std::size_t>(size);
      std::vector<R> real(rows + 1), imaginary(rows + 1),
          packed(v != nullptr ? rows * rows + 1 : 1);
      Int ld_packed = std::max<Int>(1, size);
      auto call = [&](T* work, const Int* count) {
        Routines<T>::geev("N", job, &size, as<T>(a), &ld, real.data(), imaginary.data(), nullptr,
                          &one, packed.data(), &ld_packed, work, count, &info, 1, 1);
      };
      call(&wants, &query);
      if (info != 0) return info;
      Int count = wanted(wants);
      std::vector<T> work(static_cast<std::size_t>(count));
      call(work.data(), &count);
      if (info != 0) return info;
      // A conjugate pair keeps its vectors as one column of real and one of imaginary parts.
      auto* values = as<std::complex<R>>(w);
      auto* vectors = as<std::complex<R>>(v);
      for (std::size_t j = 0; j < rows; ++j) {
        values[j] = {real[j], imaginary[j]};
        if (v == nullptr) continue;
        bool first = imaginary[j] > 0, second = imaginary[j] < 0;
        const R* x = packed.data() + (second ? j - 1 : j) * rows;
        const R* y = packed.data() + (first ? j + 1 : j) * rows;
        for (std::size_t i = 0; i < rows; ++i) {
          R part = first ? y[i] : second ? -y[i] : R(0);
          vectors[j * static_cast<std::size_t>(ldv) + i] = {x[i], part};
        }
      }
      return info;
    }
  });
}

int32_t trsm(uint8_t type, int32_t right, int32_t upper, int32_t op, int32_t unit, int64_t m,
             int64_t n, const void* a, int64_t lda, void* b, int64_t ldb) {
  CBLAS_SIDE side = right ? CblasRight : CblasLeft;
  CBLAS_UPLO uplo = upper ? CblasUpper : CblasLower;
  CBLAS_TRANSPOSE trans = op == 0 ? CblasNoTrans : op == 1 ? CblasTrans : CblasConjTrans;
  CBLAS_DIAG diag = unit ? CblasUnit : CblasNonUnit;
  Int rows = narrow(m), columns = narrow(n), ld = narrow(lda), ld_b = narrow(ldb);
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    const T one(1);
    if constexpr (std::is_same_v<T, float>) {
      cblas_strsm(CblasColMajor, side, uplo, trans, diag, rows, columns, one, as<T>(a), ld,
                  as<T>(b), ld_b);
    } else if constexpr (std::is_same_v<T, double>) {
      cblas_dtrsm(CblasColMajor, side, uplo, trans, diag, rows, columns, one, as<T>(a), ld,
                  as<T>(b), ld_b);
    } else if constexpr (std::is_same_v<T, c64>) {
      cblas_ctrsm(CblasColMajor, side, uplo, trans, diag, rows, columns, &one, a, ld, b, ld_b);
    } else {
      cblas_ztrsm(CblasColMajor, side, uplo, trans, diag, rows, columns, &one, a, ld, b, ld_b);
    }
    return 0;
  });
}

int32_t sytrf(uint8_t type, int32_t hermitian, int64_t n, void* a, int64_t lda, int32_t* pivots) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    const auto factor = hermitian ? Routines<T>::hetrf : Routines<T>::sytrf;
    Int size = narrow(n), ld = narrow(lda), info = 0, query = -1;
    T wants{};
    factor("L", &size, as<T>(a), &ld, pivots, &wants, &query, &info, 1);
    if (info != 0) return info;
    Int count = wanted(wants);
    auto work = work_space<T>(count, size);
    factor("L", &size, as<T>(a), &ld, pivots, work.data(), &count, &info, 1);
    return info;
  });
}

int32_t sytrs(uint8_t type, int32_t hermitian, int64_t n, int64_t columns, const void* a,
              int64_t lda, const int32_t* pivots, void* b, int64_t ldb) {
  return by_type(type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    const auto solve = hermitian ? Routines<T>::hetrs : Routines<T>::sytrs;
    Int size = narrow(n), nrhs = narrow(columns), ld = narrow(lda), ld_b = narrow(ldb), info = 0;
    solve("L", &size, &nrhs, as<T>(a), &ld, pivots, as<T>(b), &ld_b, &info, 1);
    return info;
  });
}

}  // namespace

const lamella_lapack lamella_lapack_table = {&potrf, &getrf, &getrs, &geqrf, &orgqr, &gesdd,
                                             &heevd, &geev,  &trsm,  &sytrf, &sytrs};
