#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_GENERAL_STEPS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_GENERAL_STEPS_H_

#include "backends/cpu/linalg/lapack/lapack.h"

// The steps of which eigenvalues of general matrices are made, as lapack.h has the routines. Some are LAPACK's own
// parts, which its C interface leaves out: their Fortran symbols are declared here. First rows and columns are counted
// from 1, as there.

extern "C" {
#define TENSORD_DECLARE_PARTS(T, p)                                                                                   \
  void p##lahr2_(const lapack_int* n, const lapack_int* k, const lapack_int* nb, T* a, const lapack_int* lda, T* tau, \
                 T* t, const lapack_int* ldt, T* y, const lapack_int* ldy);
TENSORD_DECLARE_PARTS(float, s)
TENSORD_DECLARE_PARTS(double, d)
TENSORD_DECLARE_PARTS(std::complex<float>, c)
TENSORD_DECLARE_PARTS(std::complex<double>, z)
#undef TENSORD_DECLARE_PARTS

// The eigenvalues of real matrices have their parts in two places.
#define TENSORD_DECLARE_QR(T, p, VALUES)                                                                             \
  void p##lahqr_(const lapack_int* wantt, const lapack_int* wantz, const lapack_int* n, const lapack_int* ilo,       \
                 const lapack_int* ihi, T* h, const lapack_int* ldh, VALUES, const lapack_int* iloz,                 \
                 const lapack_int* ihiz, T* z, const lapack_int* ldz, lapack_int* info);                             \
  void p##laqr3_(const lapack_int* wantt, const lapack_int* wantz, const lapack_int* n, const lapack_int* ktop,      \
                 const lapack_int* kbot, const lapack_int* nw, T* h, const lapack_int* ldh, const lapack_int* iloz,  \
                 const lapack_int* ihiz, T* z, const lapack_int* ldz, lapack_int* ns, lapack_int* nd, VALUES, T* v,  \
                 const lapack_int* ldv, const lapack_int* nh, T* t, const lapack_int* ldt, const lapack_int* nv,     \
                 T* wv, const lapack_int* ldwv, T* work, const lapack_int* lwork);                                   \
  void p##laqr5_(const lapack_int* wantt, const lapack_int* wantz, const lapack_int* kacc22, const lapack_int* n,    \
                 const lapack_int* ktop, const lapack_int* kbot, const lapack_int* nshfts, VALUES, T* h,             \
                 const lapack_int* ldh, const lapack_int* iloz, const lapack_int* ihiz, T* z, const lapack_int* ldz, \
                 T* v, const lapack_int* ldv, T* u, const lapack_int* ldu, const lapack_int* nv, T* wv,              \
                 const lapack_int* ldwv, const lapack_int* nh, T* wh, const lapack_int* ldwh);
#define TENSORD_PARTS(T) T *wr, T *wi
TENSORD_DECLARE_QR(float, s, TENSORD_PARTS(float))
TENSORD_DECLARE_QR(double, d, TENSORD_PARTS(double))
TENSORD_DECLARE_QR(std::complex<float>, c, std::complex<float>* w)
TENSORD_DECLARE_QR(std::complex<double>, z, std::complex<double>* w)
#undef TENSORD_PARTS
#undef TENSORD_DECLARE_QR
}

namespace tensord::cpu::lapack {

// A Hessenberg matrix on its way to Schur form, rows and columns `first` to `last` of it, and the matrix that gathers
// its transformations; without `z`, only its eigenvalues are wanted, and it is left undefined.
template <typename T>
struct HessenbergArguments {
  lapack_int n, first, last;
  T* h;
  T* z;
  T* values;           // real parts, of a real matrix
  T* imaginary_parts;  // of a real matrix
};

// Scratch of Deflate and Sweep, whose blocks have up to `size` rows and columns.
template <typename T>
struct QrWork {
  lapack_int size;
  T* vectors;  // size x size
  T* across;   // size x size
  T* along;    // size x size
  T* work;
  lapack_int work_size;
};

struct Deflation {
  lapack_int shifts, deflated;
};

#define TENSORD_LAPACK_GENERAL_STEPS(T, p, VALUES)                                                                    \
  /* Factors `columns` columns from `first` on, of which rows from first + 1 to `last` are reflected. `y` has n rows. \
   */                                                                                                                 \
  inline void Lahr2(lapack_int last, lapack_int first, lapack_int columns, T* a, lapack_int leading, T* tau, T* t,    \
                    lapack_int t_leading, T* y) {                                                                     \
    p##lahr2_(&last, &first, &columns, a, &leading, tau, t, &t_leading, y, &leading);                                 \
  }                                                                                                                   \
  inline int64_t Gehrd(lapack_int n, lapack_int first, lapack_int last, T* a, T* tau, T* work, int64_t work_size) {   \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                    \
      return LAPACKE_##p##gehrd_work(LAPACK_COL_MAJOR, n, first, last, a, n, tau, w, lwork);                          \
    });                                                                                                               \
  }                                                                                                                   \
  /* Q^H of a block of reflectors times the m×n matrix c. work: n×k. */                                             \
  inline void ApplyBlockAdjoint(lapack_int m, lapack_int n, lapack_int k, const T* v, lapack_int v_leading,           \
                                const T* t, lapack_int t_leading, T* c, lapack_int c_leading, T* work) {              \
    LAPACKE_##p##larfb_work(LAPACK_COL_MAJOR, 'L', 'C', 'F', 'C', m, n, k, v, v_leading, t, t_leading, c, c_leading,  \
                            work, n);                                                                                 \
  }                                                                                                                   \
  /* The double-shift algorithm to its end. */                                                                        \
  inline int64_t Lahqr(const HessenbergArguments<T>& x) {                                                             \
    const lapack_int wants = x.z != nullptr ? 1 : 0, one = 1;                                                         \
    lapack_int info = 0;                                                                                              \
    p##lahqr_(&wants, &wants, &x.n, &x.first, &x.last, x.h, &x.n, VALUES(0), &one, &x.n, x.z, &x.n, &info);           \
    return info;                                                                                                      \
  }                                                                                                                   \
  /* Deflates what it finds in the last `window` rows and columns; other eigenvalues there are shifts. */             \
  inline Deflation Deflate(const HessenbergArguments<T>& x, lapack_int window, const QrWork<T>& work) {               \
    const lapack_int wants = x.z != nullptr ? 1 : 0, one = 1;                                                         \
    Deflation found{0, 0};                                                                                            \
    p##laqr3_(&wants, &wants, &x.n, &x.first, &x.last, &window, x.h, &x.n, &one, &x.n, x.z, &x.n, &found.shifts,      \
              &found.deflated, VALUES(0), work.vectors, &work.size, &work.size, work.across, &work.size, &work.size,  \
              work.along, &work.size, work.work, &work.work_size);                                                    \
    return found;                                                                                                     \
  }                                                                                                                   \
  /* The size of the work of a window as large as a matrix. */                                                        \
  inline int64_t DeflateWorkSize(lapack_int n, T answer) {                                                            \
    const lapack_int wants = 1, one = 1, query = -1;                                                                  \
    lapack_int shifts = 0, deflated = 0;                                                                              \
    T none{};                                                                                                         \
    const HessenbergArguments<T> x{.values = &none, .imaginary_parts = &none};                                        \
    p##laqr3_(&wants, &wants, &n, &one, &n, &n, &none, &n, &one, &n, &none, &n, &shifts, &deflated, VALUES(0), &none, \
              &n, &n, &none, &n, &n, &none, &n, &answer, &query);                                                     \
    return WorkSize(answer);                                                                                          \
  }                                                                                                                   \
  /* One sweep of an even number of shifts, which are values from `shift` on. */                                      \
  inline void Sweep(const HessenbergArguments<T>& x, lapack_int shift, lapack_int count, const QrWork<T>& work) {     \
    const lapack_int wants = x.z != nullptr ? 1 : 0, one = 1, accumulates = 2, three = 3;                             \
    p##laqr5_(&wants, &wants, &accumulates, &x.n, &x.first, &x.last, &count, VALUES(shift), x.h, &x.n, &one, &x.n,    \
              x.z, &x.n, work.work, &three, work.vectors, &work.size, &work.size, work.along, &work.size, &work.size, \
              work.across, &work.size);                                                                               \
  }
#define TENSORD_TWO_PARTS(at) x.values + (at), x.imaginary_parts + (at)
#define TENSORD_ONE_PART(at) x.values + (at)
TENSORD_LAPACK_GENERAL_STEPS(float, s, TENSORD_TWO_PARTS)
TENSORD_LAPACK_GENERAL_STEPS(double, d, TENSORD_TWO_PARTS)
TENSORD_LAPACK_GENERAL_STEPS(Complex64, c, TENSORD_ONE_PART)
TENSORD_LAPACK_GENERAL_STEPS(Complex128, z, TENSORD_ONE_PART)
#undef TENSORD_TWO_PARTS
#undef TENSORD_ONE_PART
#undef TENSORD_LAPACK_GENERAL_STEPS

// B := B·L^H of an m×n matrix and the unit lower triangle that `l` has.
#define TENSORD_LAPACK_TRMM(T, p, one)                                                                         \
  inline void MultiplyByUnitLower(int64_t m, int64_t n, const T* l, int64_t ldl, T* b, int64_t ldb) {          \
    [[maybe_unused]] static constexpr T kOne = 1;                                                              \
    cblas_##p##trmm(CblasColMajor, CblasRight, CblasLower, CblasConjTrans, CblasUnit, static_cast<blasint>(m), \
                    static_cast<blasint>(n), one, l, static_cast<blasint>(ldl), b, static_cast<blasint>(ldb)); \
  }
TENSORD_LAPACK_TRMM(float, s, 1)
TENSORD_LAPACK_TRMM(double, d, 1)
TENSORD_LAPACK_TRMM(Complex64, c, &kOne)
TENSORD_LAPACK_TRMM(Complex128, z, &kOne)
#undef TENSORD_LAPACK_TRMM

// Right eigenvectors of an upper quasi-triangular matrix that are selected: two columns for a pair of conjugates, of
// which `selected` names the first. work: 3n. A complex matrix is written to and put back.
#define TENSORD_LAPACK_TREVC(T, p, ...)                                                                            \
  inline int64_t Trevc(lapack_int n, lapack_logical* selected, T* t, lapack_int columns, T* vectors, T* work,      \
                       [[maybe_unused]] Real<T>* real_work) {                                                      \
    lapack_int made = 0;                                                                                           \
    return LAPACKE_##p##trevc_work(LAPACK_COL_MAJOR, 'R', 'S', selected, n, t, n, nullptr, 1, vectors, n, columns, \
                                   &made, work __VA_ARGS__);                                                       \
  }
TENSORD_LAPACK_TREVC(float, s)
TENSORD_LAPACK_TREVC(double, d)
TENSORD_LAPACK_TREVC(Complex64, c, , real_work)
TENSORD_LAPACK_TREVC(Complex128, z, , real_work)
#undef TENSORD_LAPACK_TREVC

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_GENERAL_STEPS_H_
