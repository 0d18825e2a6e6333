#include "backends/cpu/contraction/half_vector_product.h"

#include <algorithm>

#include "backends/cpu/math/half_conversion.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastMatrixElements = 256;  // of a matrix
constexpr int64_t kMostVectors = 4;        // more vectors are a matrix, whose tiles read this one as often as it pays
constexpr int64_t kLeastVectorReads = 32;  // of each of several vectors
constexpr int64_t kMostOutputs = 2048;     // of a block, over all vectors: its sums stay in the nearest cache
constexpr int64_t kLeastOutputs = 64;      // of one that reads rows
constexpr int64_t kMostPartTerms = 4096;   // of a part, over all vectors
constexpr int64_t kLeastTerms = 64;        // of a part: parts are added up afterwards, which must stay little
// So much of the matrix stays in the nearest cache while the vectors go by.
constexpr int64_t kColumnsTogether = 16;
constexpr int64_t kRowsTogether = 8;
constexpr int64_t kTasks = 16;  // to keep threads busy, where there is as much to do
constexpr int64_t kTaskElements = int64_t{64} << 10;
constexpr int64_t kNarrowed = 256;  // elements on the stack, so many that calls no longer count

// The one axis that all of a role are; none if they are not one.
struct OneAxis {
  bool is_one = false;
  DotAxis axis{1, {1, 1, 1}};
};

OneAxis OneOf(const DotAxisList& axes) {
  const DotAxisList merged = MergeAxes(axes);
  if (merged.empty()) return {true};
  return {merged.size() == 1, merged[0]};
}

DotSide MatrixSide(const DotSpace& space, const std::array<DotOperand, 2>& operands) {
  if (space.Size(kRows) != space.Size(kColumns)) return space.Size(kRows) > space.Size(kColumns) ? kLhs : kRhs;
  return kHalves.Contains(operands[kLhs].dtype) ? kLhs : kRhs;
}

DotSide OtherSide(DotSide matrix) { return matrix == kLhs ? kRhs : kLhs; }

}  // namespace

std::optional<HalfVectorProduct> HalfVectorProduct::Plan(const DotSpace& space,
                                                         const std::array<DotOperand, 2>& operands,
                                                         DType result_dtype) {
  const DotSide side = MatrixSide(space, operands);
  const DType vector = operands[OtherSide(side)].dtype;
  if (!kHalves.Contains(operands[side].dtype)) return std::nullopt;
  if (GetHalfVectorLoops(operands[side].dtype).by_rows == nullptr) return std::nullopt;
  if (vector != DType::kF32 && !kHalves.Contains(vector)) return std::nullopt;
  if (result_dtype != DType::kF32 && !kHalves.Contains(result_dtype)) return std::nullopt;
  const OneAxis outputs = OneOf(space.roles[FreeRole(side)]), terms = OneOf(space.roles[kSummed]);
  const OneAxis vectors = OneOf(space.roles[FreeRole(OtherSide(side))]);
  if (!outputs.is_one || !terms.is_one || !vectors.is_one || vectors.axis.size > kMostVectors) return std::nullopt;
  if (outputs.axis.size * terms.axis.size < kLeastMatrixElements || terms.axis.size < 2) return std::nullopt;
  if (vectors.axis.size > 1 && std::min(outputs.axis.size, terms.axis.size) < kLeastVectorReads) return std::nullopt;
  if (terms.axis.strides[side] != 1 && outputs.axis.strides[side] != 1) return std::nullopt;
  return HalfVectorProduct(space, operands, result_dtype);
}

HalfVectorProduct::HalfVectorProduct(const DotSpace& space, const std::array<DotOperand, 2>& operands,
                                     DType result_dtype)
    : side_(MatrixSide(space, operands)),
      matrix_dtype_(operands[side_].dtype),
      vector_dtype_(operands[OtherSide(side_)].dtype),
      result_dtype_(result_dtype),
      loops_(GetHalfVectorLoops(matrix_dtype_)),
      outputs_axis_(OneOf(space.roles[FreeRole(side_)]).axis),
      vectors_axis_(OneOf(space.roles[FreeRole(OtherSide(side_))]).axis),
      terms_axis_(OneOf(space.roles[kSummed]).axis),
      outputs_(outputs_axis_.size),
      vectors_(vectors_axis_.size),
      terms_(terms_axis_.size),
      batch_(MergeAxes(space.roles[kBatch])),
      num_products_(space.Size(kBatch)) {
  is_by_columns_ = terms_axis_.strides[side_] != 1;
  step_ = (is_by_columns_ ? terms_axis_ : outputs_axis_).strides[side_];
  const int64_t most_outputs = kMostOutputs / vectors_;
  // Rows are runs by themselves: few of them are worth a task.
  block_ = std::min(outputs_,
                    is_by_columns_ ? most_outputs : std::clamp(kTaskElements / terms_, kLeastOutputs, most_outputs));
  // A small matrix makes fewer tasks.
  const int64_t wanted = std::clamp<int64_t>(outputs_ * terms_ / kTaskElements, 1, kTasks);
  const int64_t parts = CeilDiv(wanted, num_blocks() * num_products_);
  part_ = std::min(
      {terms_, kMostPartTerms / vectors_, std::max(kLeastTerms, RoundUp(CeilDiv(terms_, parts), kLeastTerms))});
  num_parts_ = CeilDiv(terms_, part_);
  items_per_task_ = std::max<int64_t>(1, kTaskElements / (block_ * part_ * vectors_));
}

int64_t HalfVectorProduct::scratch_bytes() const {
  if (num_parts_ == 1) return 0;
  return num_products_ * num_parts_ * outputs_ * vectors_ * static_cast<int64_t>(sizeof(float));
}

// The sums of a block, vector after vector.
void HalfVectorProduct::Store(int64_t product, int64_t first, int64_t count, const float* sums, char* result) const {
  const int64_t step = outputs_axis_.strides[kDotResult];
  for (int64_t v = 0; v < vectors_; ++v, sums += count) {
    const int64_t at = OffsetOf(kDotResult, batch_, product) + first * step + v * vectors_axis_.strides[kDotResult];
    if (result_dtype_ == DType::kF32) {
      float* const to = reinterpret_cast<float*>(result) + at;
      for (int64_t i = 0; i < count; ++i) to[i * step] = sums[i];
      continue;
    }
    uint16_t* const to = reinterpret_cast<uint16_t*>(result) + at;
    if (step == 1) {
      NarrowToHalf(result_dtype_, sums, to, count);
      continue;
    }
    uint16_t narrowed[kNarrowed];
    for (int64_t i = 0; i < count; i += kNarrowed) {
      const int64_t some = std::min(kNarrowed, count - i);
      NarrowToHalf(result_dtype_, sums + i, narrowed, some);
      for (int64_t j = 0; j < some; ++j) to[(i + j) * step] = narrowed[j];
    }
  }
}

void HalfVectorProduct::WidenVector(const char* vector, int64_t terms, float* to) const {
  const int64_t step = terms_axis_.strides[OtherSide(side_)];
  if (vector_dtype_ == DType::kF32) {
    const float* const from = reinterpret_cast<const float*>(vector);
    for (int64_t t = 0; t < terms; ++t) to[t] = from[t * step];
    return;
  }
  const uint16_t* const from = reinterpret_cast<const uint16_t*>(vector);
  if (step == 1) return WidenHalf(vector_dtype_, from, to, terms);
  uint16_t some[kNarrowed];
  for (int64_t t = 0; t < terms; t += kNarrowed) {
    const int64_t count = std::min(kNarrowed, terms - t);
    for (int64_t i = 0; i < count; ++i) some[i] = from[(t + i) * step];
    WidenHalf(vector_dtype_, some, to + t, count);
  }
}

// Multiplies each vector, `terms` elements of x.
void HalfVectorProduct::Multiply(const uint16_t* a, int64_t outputs, int64_t terms, const float* x, float* sums) const {
  const int64_t all = is_by_columns_ ? terms : outputs;
  const int64_t most = vectors_ == 1 ? all : is_by_columns_ ? kColumnsTogether : kRowsTogether;
  for (int64_t i = 0; i < all; i += most, a += most * step_) {
    const int64_t count = std::min(most, all - i);
    for (int64_t v = 0; v < vectors_; ++v) {
      if (is_by_columns_) {
        loops_.by_columns(outputs, count, a, step_, x + v * terms + i, sums + v * outputs);
      } else {
        loops_.by_rows(count, terms, a, step_, x + v * terms, sums + v * outputs + i);
      }
    }
  }
}

void HalfVectorProduct::RunItem(int64_t item, const char* matrix, const char* vectors, char* result,
                                float* partials) const {
  const int64_t part = item % num_parts_, block = item / num_parts_ % num_blocks();
  const int64_t product = item / num_parts_ / num_blocks();
  const int64_t first_term = part * part_, terms = std::min(part_, terms_ - first_term);
  const int64_t first = block * block_, outputs = std::min(block_, outputs_ - first);
  const DotSide other = OtherSide(side_);
  alignas(64) float x[kMostPartTerms];
  for (int64_t v = 0; v < vectors_; ++v) {
    const int64_t place =
        OffsetOf(other, batch_, product) + first_term * terms_axis_.strides[other] + v * vectors_axis_.strides[other];
    WidenVector(vectors + place * SizeOf(vector_dtype_), terms, x + v * terms);
  }
  alignas(64) float sums[kMostOutputs];
  std::fill_n(sums, vectors_ * outputs, 0.0F);
  const int64_t place =
      OffsetOf(side_, batch_, product) + first * outputs_axis_.strides[side_] + first_term * terms_axis_.strides[side_];
  Multiply(reinterpret_cast<const uint16_t*>(matrix) + place, outputs, terms, x, sums);
  if (num_parts_ == 1) return Store(product, first, outputs, sums, result);
  for (int64_t v = 0; v < vectors_; ++v) {
    std::copy_n(sums + v * outputs, outputs,
                partials + ((product * num_parts_ + part) * vectors_ + v) * outputs_ + first);
  }
}

// The sums of the parts, one after the other.
void HalfVectorProduct::Join(int64_t block, char* result, const float* partials) const {
  const int64_t product = block / num_blocks(), first = block % num_blocks() * block_;
  const int64_t outputs = std::min(block_, outputs_ - first);
  alignas(64) float sums[kMostOutputs];
  std::fill_n(sums, vectors_ * outputs, 0.0F);
  for (int64_t part = 0; part < num_parts_; ++part) {
    for (int64_t v = 0; v < vectors_; ++v) {
      const float* const from = partials + ((product * num_parts_ + part) * vectors_ + v) * outputs_ + first;
      for (int64_t i = 0; i < outputs; ++i) sums[v * outputs + i] += from[i];
    }
  }
  Store(product, first, outputs, sums, result);
}

void HalfVectorProduct::Run(const char* lhs, const char* rhs, char* result, char* scratch, ThreadPool& pool) const {
  const char* const matrix = side_ == kLhs ? lhs : rhs;
  const char* const vectors = side_ == kLhs ? rhs : lhs;
  float* const partials = reinterpret_cast<float*>(scratch);
  const int64_t blocks = num_products_ * num_blocks();
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end && !StopRequested(); ++item) {
      RunItem(item, matrix, vectors, result, partials);
    }
  };
  if (blocks * num_parts_ <= items_per_task_) {
    run(0, blocks * num_parts_);
  } else {
    pool.ParallelForBlocks(blocks * num_parts_, items_per_task_, run);
  }
  if (num_parts_ == 1) return;
  const auto join = [&](int64_t block) { Join(block, result, partials); };
  if (blocks == 1) return join(0);
  pool.ParallelFor(blocks, join);
}

}  // namespace tensord::cpu
