#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_BIDIAGONALIZATION_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_BIDIAGONALIZATION_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "backends/cpu/contraction/plain_product.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/panel_vector_loops.h"

namespace tensord::cpu {

// The reduction of an m×n matrix of F32, F64, C64 or C128 to a real bidiagonal one, Q^H·A·P, by reflectors from both
// sides: upper if m >= n, else lower. Leaves the same as LAPACK's gebrd. As there, a panel's reflectors are gathered
// and reach the rest of the matrix in one product [Dongarra, Hammarling and Sorensen, Block reduction of matrices to
// condensed forms for eigenvalue computations, 1989]. Until then each needs two products of the whole matrix with a
// vector: half of all the work, which LAPACK does on one thread. The product of a panel of complex numbers is one of
// real matrices.
//
// The numbers are finite and of an ordinary scale. Immutable after construction, so thread-safe. Run does not allocate
// and cannot fail. Same bits for any number of threads.
template <typename T>
class Bidiagonalization {
 public:
  using R = lapack::Real<T>;

  Bidiagonalization() = default;
  // min(m, n) > 0.
  Bidiagonalization(int64_t m, int64_t n);

  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` is dense. `diagonal` and the two tau have min(m, n) elements, `beside` one fewer. `scratch` is aligned to 64,
  // and `a`, or products are slower.
  void Run(T* a, R* diagonal, R* beside, T* column_tau, T* row_tau, char* scratch, ThreadPool& pool) const;

 private:
  // A panel of reflectors; a product updates the rest of the matrix after it.
  struct Panel {
    int64_t first = 0;
    int64_t columns = 0;
    PlainProduct update;
  };
  struct Work;

  Panel MakePanel(int64_t first) const;
  void ReduceColumn(const Panel& panel, int64_t i, T* a, const Work& work, ThreadPool& pool) const;
  void ReduceRow(const Panel& panel, int64_t i, T* a, const Work& work, ThreadPool& pool) const;
  void Update(const Panel& panel, T* a, const Work& work, char* scratch, ThreadPool& pool) const;

  ReductionLoops<T> loops_{};
  bool is_upper_ = true;
  // Sizes of the given matrix or its transpose, whichever has at least as many rows as columns.
  int64_t rows_ = 0, columns_ = 0;
  MatrixStrides strides_;
  std::vector<Panel> panels_;
  ScratchLayout layout_;
  int64_t from_left_ = 0, from_right_ = 0, line_ = 0, conjugated_ = 0, parts_ = 0, projected_ = 0;
  int64_t with_i_ = 0, apart_ = 0, products_ = 0;
};

extern template class Bidiagonalization<float>;
extern template class Bidiagonalization<double>;
extern template class Bidiagonalization<std::complex<float>>;
extern template class Bidiagonalization<std::complex<double>>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_BIDIAGONALIZATION_H_
