#include "backends/cpu/contraction/mode_product.h"

#include <algorithm>

#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastModeRunBytes = 16;              // half of the shortest vector: shorter runs are mostly mask
constexpr int64_t kLeastElements = 1024;                // of the tensor: the matrix is packed in each run
constexpr int64_t kModeTaskBytes = int64_t{256} << 10;  // of the tensor
constexpr int64_t kPieceBytes = int64_t{16} << 10;      // of a run
constexpr int64_t kNearPieceBytes = int64_t{24} << 10;  // of all terms of a run, where each is read again and again
// The processor asks for memory by itself in runs that end before it sees where they go on, and in one long one; of
// what lies between the next run is asked for, and within a run of more than a page, so far ahead of 2 to 16 at once.
// Gates on 20 qubits take 1.07 times as long with half of that, 1.03 with twice.
constexpr int64_t kShortModeRunBytes = 256;
constexpr int64_t kLongRunBytes = 4096;
constexpr int64_t kAheadBytes = 2048;

// Writes the offsets of all elements along the axes.
template <typename Offsets>
void OffsetsAlong(const DotAxisList& axes, DotSide side, Offsets* offsets) {
  const int64_t count = NumElements(axes);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (const DotAxis& axis : axes) {
      offset += rest % axis.size * axis.strides[side];
      rest /= axis.size;
    }
    (*offsets)[static_cast<size_t>(i)] = offset;
  }
}

}  // namespace

bool ModeProduct::IsMatrix(const DotSpace& space, DType dtype, DotSide matrix) {
  const DotSide tensor = matrix == kLhs ? kRhs : kLhs;
  const int64_t rows = space.Size(FreeRole(matrix)), terms = space.Size(kSummed);
  if (rows > kMostRows || terms > kMostTerms || terms < 2) return false;
  const DotAxisList free = MergeAxes(space.roles[FreeRole(tensor)]);
  if (free.empty() || free[0].strides[tensor] != 1 || free[0].strides[kDotResult] != 1) return false;
  return free[0].size * SizeOf(dtype) >= kLeastModeRunBytes && NumElements(free) * terms >= kLeastElements &&
         NumElements(free) >= 4 * std::max(rows, terms);
}

std::optional<ModeProduct> ModeProduct::Plan(const DotSpace& space, DType dtype, bool conjugates_lhs,
                                             bool conjugates_rhs) {
  if (GetModeProductLoop(dtype, kLeastModeRunBytes) == nullptr || space.Size(kBatch) != 1) return std::nullopt;
  for (const DotSide matrix : {kLhs, kRhs}) {
    if (!IsMatrix(space, dtype, matrix)) continue;
    ModeProduct product(space, dtype, matrix);
    product.conjugates_matrix_ = matrix == kLhs ? conjugates_lhs : conjugates_rhs;
    product.conjugates_tensor_ = matrix == kLhs ? conjugates_rhs : conjugates_lhs;
    return product;
  }
  return std::nullopt;
}

ModeProduct::ModeProduct(const DotSpace& space, DType dtype, DotSide matrix)
    : dtype_(dtype),
      element_bytes_(SizeOf(dtype)),
      matrix_(matrix),
      rows_(space.Size(FreeRole(matrix_))),
      terms_(space.Size(kSummed)) {
  const DotSide tensor = matrix_ == kLhs ? kRhs : kLhs;
  const DotAxisList &rows = space.roles[FreeRole(matrix_)], &terms = space.roles[kSummed];
  OffsetsAlong(rows, matrix_, &matrix_rows_);
  OffsetsAlong(rows, kDotResult, &row_offsets_);
  OffsetsAlong(terms, matrix_, &matrix_terms_);
  OffsetsAlong(terms, tensor, &term_offsets_);
  PlanTasks(MergeAxes(space.roles[FreeRole(tensor)]), tensor);
}

void ModeProduct::PlanTasks(const DotAxisList& free, DotSide tensor) {
  const auto loop = [tensor](const DotAxis& axis) -> Loop {
    return {axis.size, axis.strides[tensor], axis.strides[kDotResult]};
  };
  run_ = loop(free[0]);
  runs_ = free.size() > 1 ? loop(free[1]) : Loop{1, 0, 0};
  for (size_t i = 2; i < free.size(); ++i) loops_.push_back(loop(free[i]));
  const int64_t piece_bytes = rows_ <= kModeRows ? kPieceBytes : std::min(kPieceBytes, kNearPieceBytes / terms_);
  length_ = std::min(run_.count, piece_bytes / element_bytes_);
  count_ = std::clamp<int64_t>(kModeTaskBytes / (length_ * terms_ * element_bytes_), 1, runs_.count);
  num_tasks_ = CeilDiv(run_.count, length_) * CeilDiv(runs_.count, count_);
  for (const Loop& outer : loops_) num_tasks_ *= outer.count;
  // The processor itself sees how short runs go on, but not that several long runs go on side by side.
  const int64_t run_bytes = run_.count * element_bytes_;
  if (run_bytes > kLongRunBytes) {
    x_ahead_ = y_ahead_ = kAheadBytes / element_bytes_;
  } else if (run_bytes > kShortModeRunBytes) {
    x_ahead_ = runs_.x_step;
    y_ahead_ = runs_.y_step;
  }
  multiply_ = GetModeProductLoop(dtype_, run_.count * element_bytes_);
}

// y = M·conj(x) is conj(conj(M)·x).
template <typename Real, bool kIsComplex>
void ModeProduct::PackMatrix(const void* from_bytes, void* to_bytes) const {
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  const Real* const from = static_cast<const Real*>(from_bytes);
  Real* to = static_cast<Real*>(to_bytes);
  const Real imag_sign = conjugates_matrix_ != conjugates_tensor_ ? Real(-1) : Real(1);
  for (int64_t first = 0; first < rows_; first += kModeRows) {
    for (int64_t term = 0; term < terms_; ++term) {
      for (int64_t row = first; row < std::min(first + kModeRows, rows_); ++row) {
        const Real* const element =
            from + kParts * (matrix_rows_[static_cast<size_t>(row)] + matrix_terms_[static_cast<size_t>(term)]);
        *to++ = element[0];
        if constexpr (kIsComplex) *to++ = imag_sign * element[1];
      }
    }
  }
}

void ModeProduct::RunTask(int64_t task, const ModeProductRuns& runs, const char* x, char* y) const {
  ModeProductRuns part = runs;
  int64_t rest = task, x_offset = 0, y_offset = 0;
  const auto next = [&](int64_t count) {
    const int64_t index = rest % count;
    rest /= count;
    return index;
  };
  const int64_t element = next(CeilDiv(run_.count, length_)) * length_;
  const int64_t run = next(CeilDiv(runs_.count, count_)) * count_;
  part.length = std::min(length_, run_.count - element);
  part.count = std::min(count_, runs_.count - run);
  x_offset = element + run * runs_.x_step;
  y_offset = element + run * runs_.y_step;
  for (const Loop& loop : loops_) {
    const int64_t index = next(loop.count);
    x_offset += index * loop.x_step;
    y_offset += index * loop.y_step;
  }
  multiply_(part, x + x_offset * element_bytes_, y + y_offset * element_bytes_);
}

void ModeProduct::Run(const char* lhs, const char* rhs, char* result, ThreadPool& pool) const {
  alignas(64) char matrix[kMostRows * kMostTerms * 16];
  const char* const from = matrix_ == kLhs ? lhs : rhs;
  switch (dtype_) {
    case DType::kF32:
      PackMatrix<float, false>(from, matrix);
      break;
    case DType::kF64:
      PackMatrix<double, false>(from, matrix);
      break;
    case DType::kC64:
      PackMatrix<float, true>(from, matrix);
      break;
    default:
      PackMatrix<double, true>(from, matrix);
  }
  ModeProductRuns runs;
  runs.x_step = runs_.x_step;
  runs.y_step = runs_.y_step;
  runs.x_ahead = x_ahead_;
  runs.y_ahead = y_ahead_;
  runs.terms = terms_;
  runs.rows = rows_;
  runs.term_offsets = term_offsets_.data();
  runs.row_offsets = row_offsets_.data();
  runs.matrix = matrix;
  runs.conjugates = conjugates_tensor_;
  const char* const x = matrix_ == kLhs ? rhs : lhs;
  pool.ParallelFor(num_tasks_, [&](int64_t task) { RunTask(task, runs, x, result); });
}

}  // namespace tensord::cpu
