#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCK_REFLECTORS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCK_REFLECTORS_H_

#include <cstdint>
#include <vector>

#include "backends/cpu/contraction/plain_product.h"

namespace tensord::cpu {

// Products with the unitary matrix Q = H_0·H_1·… of Householder reflectors as LAPACK's factorizations leave them: H_i =
// 1 - tau_i·v·v^H; v has zeros before element i and a one there. Blocks of reflectors become 1 - V·T·V^H [Schreiber and
// Van Loan, A storage-efficient WY representation for products of Householder transformations, 1989]. So nearly all
// work is products of matrices, which run on all threads: LAPACK's own routines take narrower blocks and one thread.
// Products of complex numbers are products of real matrices, with two columns for one of V: itself and itself times i.
//
// Immutable after construction, so thread-safe. Apply does not allocate and cannot fail.
class BlockReflectors {
 public:
  enum class Side { kLeft, kRight };  // C := Q·C, or, for real numbers, C := C·Q^T
  struct Shape {
    int64_t length = 0;  // of the reflectors: rows of C (left) or columns (right)
    int64_t count = 0;
    int64_t others = 0;  // the other size of C
    Side side = Side::kLeft;
    bool transposes = false;          // Q^H·C, left only
    bool stored_in_rows = false;      // V's columns are rows where it lies, conjugated
    bool starts_as_identity = false;  // C is the first columns of the identity, left only
    // C is where V lies: columns of V become those of the identity when they have been read. Only with that.
    bool lies_in_v = false;
    int64_t v_leading = 0;  // elements between columns of what V lies in
    int64_t c_leading = 0;
  };

  // Tells whether this is the faster way: the machine has loops for the dtype or its parts, and the sizes are worth it.
  static bool Suits(DType dtype, int64_t length, int64_t count);

  BlockReflectors() = default;
  BlockReflectors(DType dtype, const Shape& shape);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // `scratch` is aligned to 64.
  // With lies_in_v `c` is `v`, and columns beyond V's are the identity's.
  template <typename T>
  void Apply(const T* v, const T* tau, T* c, char* scratch, ThreadPool& pool) const;

 private:
  struct Block {
    int64_t first = 0;
    int64_t count = 0;
    PlainProduct gram;     // V^H·V
    PlainProduct project;  // V^H·C, or C·V
    PlainProduct turn;     // -T times that, or that times -T^T
    PlainProduct add;      // C += V times that, or that times V^T
  };

  Block MakeBlock(DType dtype, int64_t first) const;

  Shape shape_;
  std::vector<Block> blocks_;
  int64_t dense_place_ = 0, gram_place_ = 0, triangle_place_ = 0, projected_place_ = 0, turned_place_ = 0;
  int64_t products_place_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCK_REFLECTORS_H_
