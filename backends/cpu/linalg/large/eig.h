#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_EIG_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_EIG_H_

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/contraction/plain_product.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/large/balancing.h"
#include "backends/cpu/linalg/large/block_reflectors.h"
#include "backends/cpu/linalg/large/hessenberg.h"
#include "backends/cpu/linalg/large/schur_form.h"

namespace tensord::cpu {

// Eigenvalues and, if wanted, right eigenvectors of one large general matrix: the steps of LAPACK's geev, each cut,
// with their products on all threads.
//
// Immutable after construction, so thread-safe. Run does not allocate, gives the same bits for any number of threads,
// and returns LAPACK's info; `scratch` is aligned to 64 and belongs to the call.
template <typename T>
class LargeEig {
 public:
  using R = lapack::Real<T>;
  using C = std::complex<R>;
  static bool Suits(int64_t n) { return n >= kLeastEigSize; }
  // Plans it; nothing if another way is as fast.
  static std::optional<LargeEig> Plan(int64_t n, bool has_vectors) {
    return Suits(n) ? std::make_optional(LargeEig(n, has_vectors)) : std::nullopt;
  }

  LargeEig(int64_t n, bool has_vectors);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // The numbers are finite. `vectors` is null if none are wanted.
  int64_t Run(const T* a, C* values, C* vectors, char* scratch, ThreadPool& pool) const;

 private:
  static constexpr int64_t kLeastEigSize = 128;  // below it LAPACK's driver costs as little

  struct Spectrum {
    T* triangle;
    T* z;
    T* values;
    T* imaginary_parts;
  };

  void MakeUnitary(const T* reduced, const T* tau, T* z, char* scratch, ThreadPool& pool) const;
  int64_t ChunkEnd(int64_t begin, const Spectrum& spectrum) const;
  void SolveChunk(int64_t begin, int64_t end, const Spectrum& spectrum, T* solved, char* scratch) const;
  bool MultiplyVectors(const T* z, const T* solved, T* vectors, char* scratch, ThreadPool& pool) const;
  void WriteChunk(int64_t begin, int64_t end, const Spectrum& spectrum, const typename Balancing<T>::Range& range,
                  C* vectors, char* scratch) const;

  int64_t n_;
  Balancing<T> balancing_;
  HessenbergReduction<T> hessenberg_;
  SchurForm<T> schur_;
  BlockReflectors q_;
  std::vector<PlainProduct> products_;  // of real vectors, some columns each
  ScratchLayout layout_;
  int64_t a_ = 0, places_ = 0, scales_ = 0, counts_ = 0, tau_ = 0, values_ = 0, imaginary_parts_ = 0;
  int64_t z_ = 0, solved_ = 0, selected_ = 0, solve_work_ = 0, real_work_ = 0, work_ = 0;
};

extern template class LargeEig<float>;
extern template class LargeEig<double>;
extern template class LargeEig<lapack::Complex64>;
extern template class LargeEig<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_EIG_H_
