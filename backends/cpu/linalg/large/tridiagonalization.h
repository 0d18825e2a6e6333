#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_TRIDIAGONALIZATION_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_TRIDIAGONALIZATION_H_

#include <complex>
#include <cstdint>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/panel_vector_loops.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

// A symmetric matrix of F32 or F64, or a Hermitian one of C64 or C128, becomes tridiagonal by Householder reflectors
// from both sides, on all threads [Dongarra, Hammarling and Sorensen, Block reduction of matrices to condensed forms
// for eigenvalue computations, 1989]. The lower triangle is read. Half of the work is products of the whole matrix with
// a vector; threads share them in fixed parts and read each number once. The rest is one update for each panel of
// columns: a product of real matrices, for complex numbers too.
//
// Immutable after construction, so thread-safe. Run does not allocate, cannot fail, and gives the same bits for any
// number of threads.
template <typename T>
class Tridiagonalization {
 public:
  using R = lapack::Real<T>;
  static bool Suits(int64_t n);

  explicit Tridiagonalization(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // Leaves the same as LAPACK's sytrd and hetrd: reflectors below the diagonal, without their ones, and n - 1 elements
  // of `beside` and `tau`. Entries above the diagonal are undefined afterwards. `a` is aligned to 64, or products are
  // slower.
  void Run(T* a, R* diagonal, R* beside, T* tau, char* scratch, ThreadPool& pool) const;

 private:
  struct Work {
    // v, w, v, w, … of the panel, from its first row on: A - V·W^H - W·V^H is to come. Complex ones are each followed
    // by themselves times i.
    T* factors;
    T* line;
    T* parts;
    T* projected;
  };

  void ReduceColumn(int64_t first, int64_t i, T* a, const Work& work, R* diagonal, R* beside, T* tau,
                    ThreadPool& pool) const;
  void Multiply(int64_t first, const T* a, const T* v, T* parts, T* w, ThreadPool& pool) const;
  void Update(int64_t first, int64_t column, int64_t count, const T* factors, T* a) const;

  int64_t n_;
  GemmTiles tiles_;
  ReductionLoops<T> loops_;
  ScratchLayout layout_;
  int64_t factors_ = 0, line_ = 0, parts_ = 0, projected_ = 0;
};

extern template class Tridiagonalization<float>;
extern template class Tridiagonalization<double>;
extern template class Tridiagonalization<std::complex<float>>;
extern template class Tridiagonalization<std::complex<double>>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_TRIDIAGONALIZATION_H_
