#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_LAPACK_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_LAPACK_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapacke.h>

// LAPACK's routines under one name for all element types, through LAPACKE's work-level interface: no allocation, no
// check for NaN. Matrices are column-major and dense. Sizes were checked to fit LAPACK's 32 bits. Each returns LAPACK's
// info. Routines with a workspace return its size, in elements, if `work` is null.

namespace tensord::cpu::lapack {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <typename T>
struct RealOf {
  using type = T;
};
template <typename R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <typename T>
using Real = typename RealOf<T>::type;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// Returns the answer of a workspace query as a size; a float may have been rounded down.
template <typename T>
int64_t WorkSize(T answer) {
  const double size = static_cast<double>(std::real(answer));
  const double epsilon = double{std::numeric_limits<Real<T>>::epsilon()};
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(size * (1 + epsilon))));
}

// Calls function(work, lwork), and with a null workspace asks it for the size, which comes back instead of info.
template <typename T, typename Function>
int64_t WithWork(T* work, int64_t size, const Function& function) {
  if (work != nullptr) return function(work, static_cast<lapack_int>(size));
  T answer{};
  const int64_t info = function(&answer, lapack_int{-1});
  return info == 0 ? WorkSize(answer) : info;
}

#define TENSORD_LAPACK_COMMON(T, p)                                                                                    \
  inline int64_t Potrf(int64_t n, T* a, int64_t leading) {                                                             \
    return LAPACKE_##p##potrf_work(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n), a,                               \
                                   static_cast<lapack_int>(leading));                                                  \
  }                                                                                                                    \
  inline int64_t Getrf(int64_t m, int64_t n, T* a, int64_t leading, lapack_int* pivots) {                              \
    return LAPACKE_##p##getrf_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(m), static_cast<lapack_int>(n), a,        \
                                   static_cast<lapack_int>(leading), pivots);                                          \
  }                                                                                                                    \
  inline int64_t Getrs(int64_t n, int64_t columns, const T* lu, const lapack_int* pivots, T* b) {                      \
    const lapack_int size = static_cast<lapack_int>(n);                                                                \
    return LAPACKE_##p##getrs_work(LAPACK_COL_MAJOR, 'N', size, static_cast<lapack_int>(columns), lu, size, pivots, b, \
                                   size);                                                                              \
  }                                                                                                                    \
  inline int64_t Geqrf(int64_t m, int64_t n, T* a, T* tau, T* work, int64_t work_size) {                               \
    const lapack_int rows = static_cast<lapack_int>(m), columns = static_cast<lapack_int>(n);                          \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                     \
      return LAPACKE_##p##geqrf_work(LAPACK_COL_MAJOR, rows, columns, a, rows, tau, w, lwork);                         \
    });                                                                                                                \
  }
TENSORD_LAPACK_COMMON(float, s)
TENSORD_LAPACK_COMMON(double, d)
TENSORD_LAPACK_COMMON(Complex64, c)
TENSORD_LAPACK_COMMON(Complex128, z)
#undef TENSORD_LAPACK_COMMON

// The first n columns of the Q of k reflectors.
#define TENSORD_LAPACK_UNITARY(T, name)                                                                          \
  inline int64_t Orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau, T* work, int64_t work_size) {        \
    const lapack_int rows = static_cast<lapack_int>(m), columns = static_cast<lapack_int>(n);                    \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                               \
      return LAPACKE_##name##_work(LAPACK_COL_MAJOR, rows, columns, static_cast<lapack_int>(k), a, rows, tau, w, \
                                   lwork);                                                                       \
    });                                                                                                          \
  }
TENSORD_LAPACK_UNITARY(float, sorgqr)
TENSORD_LAPACK_UNITARY(double, dorgqr)
TENSORD_LAPACK_UNITARY(Complex64, cungqr)
TENSORD_LAPACK_UNITARY(Complex128, zungqr)
#undef TENSORD_LAPACK_UNITARY

// The vectors wanted of a singular value decomposition: none, the first min(m, n), or all.
enum class Vectors : char { kNone = 'N', kThin = 'S', kFull = 'A' };

// Numbers of the real workspace: none for real matrices.
inline int64_t GesddRealWorkSize(Vectors vectors, int64_t m, int64_t n) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  return vectors == Vectors::kNone ? 7 * few : std::max(5 * few * few + 7 * few, 2 * many * few + 2 * few * few + few);
}
inline int64_t GesddIntegerWorkSize(int64_t m, int64_t n) { return 8 * std::min(m, n); }

template <typename T>
struct SvdArguments {
  Vectors vectors;
  int64_t m, n;
  T* a;
  Real<T>* s;
  T *u, *vh;
  Real<T>* real_work;
  lapack_int* integer_work;

  lapack_int rows() const { return static_cast<lapack_int>(m); }
  lapack_int columns() const { return static_cast<lapack_int>(n); }
  lapack_int vh_rows() const {
    if (vectors == Vectors::kNone) return 1;
    return static_cast<lapack_int>(vectors == Vectors::kFull ? n : std::min(m, n));
  }
};

#define TENSORD_LAPACK_SVD_REAL(T, p)                                                                            \
  inline int64_t Gesdd(const SvdArguments<T>& x, T* work, int64_t work_size) {                                   \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                               \
      return LAPACKE_##p##gesdd_work(LAPACK_COL_MAJOR, static_cast<char>(x.vectors), x.rows(), x.columns(), x.a, \
                                     x.rows(), x.s, x.u, x.rows(), x.vh, x.vh_rows(), w, lwork, x.integer_work); \
    });                                                                                                          \
  }                                                                                                              \
  inline int64_t Gesvd(const SvdArguments<T>& x, T* work, int64_t work_size) {                                   \
    const char job = static_cast<char>(x.vectors);                                                               \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                               \
      return LAPACKE_##p##gesvd_work(LAPACK_COL_MAJOR, job, job, x.rows(), x.columns(), x.a, x.rows(), x.s, x.u, \
                                     x.rows(), x.vh, x.vh_rows(), w, lwork);                                     \
    });                                                                                                          \
  }
#define TENSORD_LAPACK_SVD_COMPLEX(T, p)                                                                         \
  inline int64_t Gesdd(const SvdArguments<T>& x, T* work, int64_t work_size) {                                   \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                               \
      return LAPACKE_##p##gesdd_work(LAPACK_COL_MAJOR, static_cast<char>(x.vectors), x.rows(), x.columns(), x.a, \
                                     x.rows(), x.s, x.u, x.rows(), x.vh, x.vh_rows(), w, lwork, x.real_work,     \
                                     x.integer_work);                                                            \
    });                                                                                                          \
  }                                                                                                              \
  inline int64_t Gesvd(const SvdArguments<T>& x, T* work, int64_t work_size) {                                   \
    const char job = static_cast<char>(x.vectors);                                                               \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                               \
      return LAPACKE_##p##gesvd_work(LAPACK_COL_MAJOR, job, job, x.rows(), x.columns(), x.a, x.rows(), x.s, x.u, \
                                     x.rows(), x.vh, x.vh_rows(), w, lwork, x.real_work);                        \
    });                                                                                                          \
  }
TENSORD_LAPACK_SVD_REAL(float, s)
TENSORD_LAPACK_SVD_REAL(double, d)
TENSORD_LAPACK_SVD_COMPLEX(Complex64, c)
TENSORD_LAPACK_SVD_COMPLEX(Complex128, z)
#undef TENSORD_LAPACK_SVD_REAL
#undef TENSORD_LAPACK_SVD_COMPLEX

// Numbers of the real workspace (none for real matrices) and of the one of integers, from the documentation of ?heevd.
inline int64_t HeevdRealWorkSize(bool vectors, int64_t n) { return vectors ? 1 + 5 * n + 2 * n * n : n; }
inline int64_t HeevdIntegerWorkSize(bool vectors, int64_t n) { return vectors ? 3 + 5 * n : 1; }

template <typename T>
struct HermitianArguments {
  bool vectors;
  int64_t n;
  T* a;  // lower triangle; the vectors take its place
  Real<T>* values;
  Real<T>* real_work;
  lapack_int* integer_work;
};

#define TENSORD_LAPACK_HERMITIAN(T, name, ...)                                                                  \
  inline int64_t Heevd(const HermitianArguments<T>& x, T* work, int64_t work_size) {                            \
    const lapack_int n = static_cast<lapack_int>(x.n);                                                          \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                              \
      [[maybe_unused]] const lapack_int lrwork =                                                                \
          static_cast<lapack_int>(lwork < 0 ? -1 : HeevdRealWorkSize(x.vectors, x.n));                          \
      const lapack_int liwork = static_cast<lapack_int>(lwork < 0 ? -1 : HeevdIntegerWorkSize(x.vectors, x.n)); \
      return LAPACKE_##name##_work(LAPACK_COL_MAJOR, x.vectors ? 'V' : 'N', 'L', n, x.a, n, x.values, w, lwork, \
                                   __VA_ARGS__ x.integer_work, liwork);                                         \
    });                                                                                                         \
  }
TENSORD_LAPACK_HERMITIAN(float, ssyevd, )
TENSORD_LAPACK_HERMITIAN(double, dsyevd, )
TENSORD_LAPACK_HERMITIAN(Complex64, cheevd, x.real_work, lrwork, )
TENSORD_LAPACK_HERMITIAN(Complex128, zheevd, x.real_work, lrwork, )
#undef TENSORD_LAPACK_HERMITIAN

template <typename T>
struct GeneralArguments {
  int64_t n;
  T* a;
  T* values;   // of a real matrix: real parts, then at imaginary_parts the imaginary ones
  T* vectors;  // null: none
  T* imaginary_parts;
  Real<T>* real_work;  // 2n, of a complex matrix
};

#define TENSORD_LAPACK_GENERAL(T, name, values, ...)                                                           \
  inline int64_t Geev(const GeneralArguments<T>& x, T* work, int64_t work_size) {                              \
    const lapack_int n = static_cast<lapack_int>(x.n), vector_rows = x.vectors == nullptr ? 1 : n;             \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                             \
      return LAPACKE_##name##_work(LAPACK_COL_MAJOR, 'N', x.vectors == nullptr ? 'N' : 'V', n, x.a, n, values, \
                                   nullptr, 1, x.vectors, vector_rows, w, lwork __VA_ARGS__);                  \
    });                                                                                                        \
  }
#define TENSORD_LAPACK_PARTS x.values, x.imaginary_parts
TENSORD_LAPACK_GENERAL(float, sgeev, TENSORD_LAPACK_PARTS)
TENSORD_LAPACK_GENERAL(double, dgeev, TENSORD_LAPACK_PARTS)
TENSORD_LAPACK_GENERAL(Complex64, cgeev, x.values, , x.real_work)
TENSORD_LAPACK_GENERAL(Complex128, zgeev, x.values, , x.real_work)
#undef TENSORD_LAPACK_PARTS
#undef TENSORD_LAPACK_GENERAL

// The op(A) of a triangular system.
struct Triangle {
  bool left;
  bool lower;
  CBLAS_TRANSPOSE transpose;
  bool unit_diagonal;
};

// Solves op(A)·X = B or X·op(A) = B in place of the m×n matrix b, whose columns lie ldb apart.
#define TENSORD_LAPACK_TRSM(T, p, one)                                                                                 \
  inline void Trsm(const Triangle& t, int64_t m, int64_t n, const T* a, int64_t lda, T* b, int64_t ldb) {              \
    [[maybe_unused]] static constexpr T kOne = 1;                                                                      \
    cblas_##p##trsm(CblasColMajor, t.left ? CblasLeft : CblasRight, t.lower ? CblasLower : CblasUpper, t.transpose,    \
                    t.unit_diagonal ? CblasUnit : CblasNonUnit, static_cast<blasint>(m), static_cast<blasint>(n), one, \
                    a, static_cast<blasint>(lda), b, static_cast<blasint>(ldb));                                       \
  }
TENSORD_LAPACK_TRSM(float, s, 1)
TENSORD_LAPACK_TRSM(double, d, 1)
TENSORD_LAPACK_TRSM(Complex64, c, &kOne)
TENSORD_LAPACK_TRSM(Complex128, z, &kOne)
#undef TENSORD_LAPACK_TRSM

// Sizes of the product of an m×k and a k×n matrix.
struct ProductSizes {
  int64_t m, n, k;
  CBLAS_TRANSPOSE transpose_a = CblasNoTrans;
  CBLAS_TRANSPOSE transpose_b = CblasNoTrans;
};

// C := C - op(A)·op(B), of matrices whose columns lie lda, ldb and ldc apart.
#define TENSORD_LAPACK_SUBTRACT(T, p, plus, minus)                                                                     \
  inline void SubtractProduct(const ProductSizes& x, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,           \
                              int64_t ldc) {                                                                           \
    [[maybe_unused]] static constexpr T kOne = 1, kMinusOne = -1;                                                      \
    cblas_##p##gemm(CblasColMajor, x.transpose_a, x.transpose_b, static_cast<blasint>(x.m), static_cast<blasint>(x.n), \
                    static_cast<blasint>(x.k), minus, a, static_cast<blasint>(lda), b, static_cast<blasint>(ldb),      \
                    plus, c, static_cast<blasint>(ldc));                                                               \
  }
TENSORD_LAPACK_SUBTRACT(float, s, 1, -1)
TENSORD_LAPACK_SUBTRACT(double, d, 1, -1)
TENSORD_LAPACK_SUBTRACT(Complex64, c, &kOne, &kMinusOne)
TENSORD_LAPACK_SUBTRACT(Complex128, z, &kOne, &kMinusOne)
#undef TENSORD_LAPACK_SUBTRACT

// The lower triangle of C := C - A·A^H, of an n×k matrix A.
#define TENSORD_LAPACK_SUBTRACT_GRAM(T, name)                                                                      \
  inline void SubtractGram(int64_t n, int64_t k, const T* a, int64_t lda, T* c, int64_t ldc) {                     \
    cblas_##name(CblasColMajor, CblasLower, CblasNoTrans, static_cast<blasint>(n), static_cast<blasint>(k), -1, a, \
                 static_cast<blasint>(lda), 1, c, static_cast<blasint>(ldc));                                      \
  }
TENSORD_LAPACK_SUBTRACT_GRAM(float, ssyrk)
TENSORD_LAPACK_SUBTRACT_GRAM(double, dsyrk)
TENSORD_LAPACK_SUBTRACT_GRAM(Complex64, cherk)
TENSORD_LAPACK_SUBTRACT_GRAM(Complex128, zherk)
#undef TENSORD_LAPACK_SUBTRACT_GRAM

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_LAPACK_H_
