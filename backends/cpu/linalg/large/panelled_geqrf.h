#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_GEQRF_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_GEQRF_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/block_reflectors.h"

namespace tensord::cpu {

// The reflectors and R of one matrix that is large, or long, in its place and as LAPACK's geqrf leaves them. LAPACK
// factors a panel of columns, and BlockReflectors apply it to the columns after it.
//
// Immutable after construction, so thread-safe. Run does not allocate, and gives the same bits for any number of
// threads.
template <typename T>
class PanelledGeqrf {
 public:
  // Tells whether panels are the faster way for an m x n matrix, of whose Q `q_columns` columns are then made.
  static bool Suits(int64_t m, int64_t n, int64_t q_columns = 0);
  // Plans it; nothing if another way is as fast.
  static std::optional<PanelledGeqrf> Plan(int64_t m, int64_t n) {
    return Suits(m, n) ? std::make_optional(PanelledGeqrf(m, n)) : std::nullopt;
  }

  PanelledGeqrf() = default;
  PanelledGeqrf(int64_t m, int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `tau` has min(m, n) elements. `scratch` is aligned to 64. Returns LAPACK's info.
  int64_t Run(T* a, T* tau, char* scratch, ThreadPool& pool) const;

 private:
  struct Panel {
    int64_t first = 0;
    int64_t columns = 0;
    BlockReflectors update;  // of the columns that follow
  };

  int64_t m_ = 0, n_ = 0;
  int64_t work_size_ = 0;
  std::vector<Panel> panels_;
  ScratchLayout layout_;
  int64_t work_ = 0;
};

extern template class PanelledGeqrf<float>;
extern template class PanelledGeqrf<double>;
extern template class PanelledGeqrf<lapack::Complex64>;
extern template class PanelledGeqrf<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_GEQRF_H_
