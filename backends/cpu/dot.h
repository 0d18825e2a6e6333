#ifndef TENSORD_BACKENDS_CPU_DOT_H_
#define TENSORD_BACKENDS_CPU_DOT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/strided_copy.h"
#include "backends/cpu/thread_pool.h"
#include "engine/tensor/shape.h"

namespace tensord::cpu {

// The axes of a dot_general: pairs that are summed over, and pairs that both sides and the result share.
struct DotAxes {
  absl::Span<const int64_t> lhs_contracting;
  absl::Span<const int64_t> rhs_contracting;
  absl::Span<const int64_t> lhs_batch;
  absl::Span<const int64_t> rhs_batch;
  bool conjugates_lhs = false;  // of complex numbers only
  bool conjugates_rhs = false;
};

// A planned dot_general of dense column-major tensors. Result axes: lhs free, rhs free, batch, so that each matrix of
// the batch is contiguous. Either side may be conjugated as it is read; integers wrap; BOOL is or of ands; F16 and BF16
// are computed in F32; a wider result dtype is computed in that dtype. Over no element the sum is 0.
//
// Axes of one role become one axis of a matrix wherever their strides allow; an operand is packed into scratch only
// where they do not, and converted there where its dtype is not what is computed in. Matrices of the batch, and blocks
// of large ones, are tasks for the pool, cut by sizes alone: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class Contraction {
 public:
  // The axes are valid for the shapes, and the result dtype for the operands'. UNSUPPORTED_ON_DEVICE where a size is
  // beyond what BLAS counts.
  static absl::StatusOr<Contraction> Create(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes,
                                            DType result_dtype);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // `scratch` has scratch_bytes() bytes, aligned to 64.
  void Run(const void* lhs, const void* rhs, void* result, void* scratch, ThreadPool& pool) const;

 private:
  // An axis of one role, with its strides in elements on the side or sides that have it.
  struct Axis {
    int64_t size = 1;
    int64_t lhs_stride = 0;
    int64_t rhs_stride = 0;
  };
  using Axes = absl::InlinedVector<Axis, 4>;
  // What is done to an operand before the product reads it: packing, conversion, conjugation, in this order, each
  // optional.
  struct Preparation {
    StridedCopy pack;
    DType dtype = DType::kInvalid;  // of the operand
    bool packs = false;
    bool converts = false;
    bool conjugates = false;
    int64_t elements = 0;
    int64_t pack_offset = 0;  // in scratch, bytes
    int64_t convert_offset = 0;
    int64_t conjugate_offset = 0;  // where nothing else was done before
  };

  Contraction() = default;
  void ClassifyAxes(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes);
  void OrderContracted();
  bool ReadsAsItLies(bool is_lhs, const Axes& contracted, MatrixProduct& product) const;
  void PlanPack(bool is_lhs, MatrixProduct& product);
  void PlanConversion(Preparation& preparation);
  void PlanConjugation(const DotAxes& axes, MatrixProduct& product);
  int64_t Reserve(int64_t bytes);
  const void* Prepare(const Preparation& preparation, const void* operand, char* scratch, ThreadPool& pool) const;
  void RunItem(int64_t item, const char* lhs, const char* rhs, char* result, char* partials) const;

  // Constant after Create.
  Axes rows_;     // of the result: lhs free axes
  Axes columns_;  // rhs free axes
  Axes contracted_;
  Axes batch_;
  DType computed_ = DType::kInvalid;
  DType result_dtype_ = DType::kInvalid;
  Preparation lhs_;
  Preparation rhs_;
  Gemm gemm_;
  int64_t num_matrices_ = 1;
  int64_t matrix_elements_ = 0;  // of the result
  int64_t num_items_ = 0;        // blocks of all matrices
  int64_t items_per_task_ = 1;
  int64_t partials_offset_ = 0;
  int64_t wide_result_offset_ = 0;  // where the result is rounded from
  int64_t scratch_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_DOT_H_
