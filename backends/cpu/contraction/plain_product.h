#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_PLAIN_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_PLAIN_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/matmul/loops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A product c = a·b, or c += a·b, of parts of matrices in F32 or F64, planned for its sizes: by tiles of ours on all
// threads where they are faster, else by BLAS on the caller. Same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class PlainProduct {
 public:
  PlainProduct() = default;
  // Sizes and strides fit 32 bits, and each operand has unit stride along one axis.
  PlainProduct(DType dtype, const MatrixProduct& product);

  bool is_tiled() const { return tiled_.has_value(); }
  int64_t scratch_bytes() const { return is_tiled() ? tiled_->scratch_bytes() : 0; }
  // `scratch` is aligned to 64.
  void Run(const void* a, const void* b, void* c, char* scratch, bool accumulates, ThreadPool& pool) const;

 private:
  DType dtype_ = DType::kInvalid;
  MatrixProduct product_;
  std::optional<TiledGemm> tiled_;  // where that is faster
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_PLAIN_PRODUCT_H_
