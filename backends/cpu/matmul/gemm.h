#ifndef TENSORD_BACKENDS_CPU_MATMUL_GEMM_H_
#define TENSORD_BACKENDS_CPU_MATMUL_GEMM_H_

#include <cstdint>

#include "backends/cpu/matmul/loops.h"
#include "backends/cpu/matmul/matrix_vector_loops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A planned product c = a·b of two matrices of one dtype, cut into blocks of c that can run on any thread. If c is
// small and k long, it is also cut along k. The cut depends on sizes and dtype only, so the bits are the same for any
// number of threads. It may add to the old c, else c is not read. Between pieces of some milliseconds it looks whether
// its work is still wanted (engine/base/stop_signal.h).
//
// Immutable after construction, so thread-safe. Does not allocate; cannot fail.
class Gemm {
 public:
  // Tells whether an operand can be read as it lies. Another one has to be packed, to unit stride along an axis.
  static bool CanReadLhs(DType dtype, const MatrixProduct& product);
  static bool CanReadRhs(DType dtype, const MatrixProduct& product);
  // Tells whether an operand can be conjugated as it is read; another one comes conjugated.
  static bool CanConjugateLhs(DType dtype, const MatrixProduct& product);
  static bool CanConjugateRhs(DType dtype, const MatrixProduct& product);
  // Tells whether a call costs next to nothing beside the arithmetic.
  static bool IsCheapToCall(DType dtype, const MatrixProduct& product);
  // Tells whether BLAS can take the sizes and strides, which it counts in 32 bits. BOOL and integers do not use it.
  static bool FitsBlas(const MatrixProduct& product);

  Gemm() = default;
  // `dtype` is BOOL, an integer, F32, F64 or complex. The product passed the checks above.
  // `copies` is how many products like this one run together: many of them keep the threads busy without being cut.
  // `sums`: how many are added up in one place, which keeps them from being cut along k.
  Gemm(DType dtype, const MatrixProduct& product, int64_t copies, int64_t sums);

  // Blocks of c, times the parts of k; 0 if c is empty.
  int64_t num_blocks() const { return row_blocks_ * column_blocks_ * k_blocks_; }
  // Bytes of scratch for partial products, one after the other for each block; 0 if k is not cut.
  int64_t partial_bytes() const;
  // Multiplications of the largest block.
  int64_t block_work() const;

  // Computes one block: of c, or with a cut k a whole partial product into `partials`.
  void RunBlock(int64_t block, const void* a, const void* b, void* c, void* partials, bool accumulates) const;
  // Computes whole products that lie at equal steps; where num_blocks() is 1.
  void RunCopies(const ProductCopies& copies, const void* a, const void* b, void* c, bool accumulates) const;
  // Adds the partial products up into c, after all blocks. Does nothing if k is not cut.
  void JoinPartials(const void* partials, void* c, bool accumulates) const;

 private:
  enum class Method { kZero, kTiny, kOuter, kGeneral, kDot, kMatrixVector, kVectorMatrix, kMatrix };

  static Method ChooseMethod(DType dtype, const MatrixProduct& product);
  void PlanBlocks();
  void PlanStreaming(int64_t outputs, bool is_contiguous_along_outputs, int64_t& output_block);
  void PlanMatrixBlocks();
  bool may_cut_k() const;
  void CutK(int64_t parts);
  void MultiplyOuter(const MatrixProduct& part, const char* a, const char* b, char* c) const;
  void MultiplyDot(const MatrixProduct& part, const char* a, const char* b, char* c) const;
  void AddUp(const void* partials, int64_t rows, int64_t count, void* c, bool accumulates) const;
  void MultiplyVector(int64_t outputs, int64_t k, MatrixStrides a_strides, bool conjugates, bool accumulates,
                      const char* a, const char* x, int64_t x_step, char* y, int64_t y_step) const;
  void MultiplyInPieces(const MatrixProduct& part, const char* a, const char* b, char* c) const;
  void Multiply(const MatrixProduct& part, const char* a, const char* b, char* c) const;

  DType dtype_ = DType::kInvalid;
  int64_t element_bytes_ = 0;
  int64_t copies_ = 1;
  int64_t sums_ = 1;
  MatrixProduct product_;
  Method method_ = Method::kZero;
  GemmLoops loops_;
  MatrixVectorLoops vector_loops_;
  int64_t block_rows_ = 1;
  int64_t block_columns_ = 1;
  int64_t block_k_ = 1;
  int64_t row_blocks_ = 0;
  int64_t column_blocks_ = 0;
  int64_t k_blocks_ = 1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_GEMM_H_
