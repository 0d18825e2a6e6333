#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_HESSENBERG_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_HESSENBERG_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"

namespace tensord::cpu {

// The reduction of a general matrix to Hessenberg form, Q^H·A·Q, by reflectors from both sides. LAPACK gathers the
// reflectors of a panel of columns; the columns after it are updated in chunks, a task each.
//
// Immutable after construction, so thread-safe. Run does not allocate, and gives the same bits for any number of
// threads.
template <typename T>
class HessenbergReduction {
 public:
  explicit HessenbergReduction(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // Reduces the rows and columns [first, end); the others are in their places already. Leaves the same as LAPACK's
  // gehrd, and n - 1 of `tau`. `scratch` is aligned to 64.
  void Run(int64_t first, int64_t end, T* a, T* tau, char* scratch, ThreadPool& pool) const;

 private:
  struct Panel {
    int64_t first, columns, end;
  };

  void UpdateColumns(const Panel& panel, int64_t column, int64_t count, T* a, const T* v, const T* triangle, const T* y,
                     T* work) const;
  void UpdatePanel(const Panel& panel, T* a, T* y) const;

  int64_t n_;
  int64_t tail_work_size_ = 0;
  ScratchLayout layout_;
  int64_t triangle_ = 0, y_ = 0, v_ = 0, tail_tau_ = 0, work_ = 0;
};

extern template class HessenbergReduction<float>;
extern template class HessenbergReduction<double>;
extern template class HessenbergReduction<lapack::Complex64>;
extern template class HessenbergReduction<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_HESSENBERG_H_
