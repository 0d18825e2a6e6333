#include "backends/cpu/contraction/lane_product.h"

#include "absl/container/inlined_vector.h"

namespace tensord::cpu {
namespace {

constexpr double kMostWork = 1 << 24;  // multiplications

// Vectors lie across the batch: shorter ones leave lanes idle. With more terms, or larger matrices, packed tiles are as
// fast as the copies made here, an element of each matrix at a time (tensor networks of hyperedges, docs/why/0022).
constexpr int64_t kLeastBatch = 16;
constexpr int64_t kMostTerms = 16;
constexpr int64_t kMostSide = 128;
constexpr int64_t kStepMultiple = 8;  // F64 lanes of AVX-512, so that a matrix begins at a whole vector

int64_t StepOf(int64_t batch) { return (batch + kStepMultiple - 1) / kStepMultiple * kStepMultiple; }

// Tells whether the axes lie one after the other in the result, from a stride on.
bool AreOneFrom(int64_t stride, const DotAxisList& axes) {
  for (const DotAxis& axis : axes) {
    if (axis.strides[kDotResult] != stride) return false;
    stride *= axis.size;
  }
  return true;
}

}  // namespace

bool LaneProduct::TakesSizes(int64_t rows, int64_t columns, int64_t terms, int64_t batch, DType dtype) {
  if (GetLaneProductLoop(dtype) == nullptr || batch < kLeastBatch || terms > kMostTerms) return false;
  return rows <= kMostSide && columns <= kMostSide && rows * columns > 1 &&
         (rows + columns) * terms * StepOf(batch) * SizeOf(dtype) <= kMostPanelBytes;
}

std::optional<LaneProduct> LaneProduct::Plan(const DotSpace& space, DType dtype) {
  const int64_t batch = space.Size(kBatch), rows = space.Size(kRows);
  // One thread makes it: larger work is left to products that several threads share.
  const double work =
      static_cast<double>(batch * rows) * static_cast<double>(space.Size(kColumns) * space.Size(kSummed));
  if (work > kMostWork) return std::nullopt;
  const bool lies_so = AreOneFrom(1, space.roles[kBatch]) && AreOneFrom(batch, space.roles[kRows]) &&
                       AreOneFrom(batch * rows, space.roles[kColumns]);
  if (!lies_so || !TakesSizes(rows, space.Size(kColumns), space.Size(kSummed), batch, dtype)) return std::nullopt;
  return LaneProduct(space, dtype);
}

LaneProduct::LaneProduct(const DotSpace& space, DType dtype) : multiply_(GetLaneProductLoop(dtype)) {
  products_.length = space.Size(kBatch);
  products_.step = StepOf(products_.length);
  products_.rows = space.Size(kRows);
  products_.columns = space.Size(kColumns);
  products_.terms = space.Size(kSummed);
  for (const DotSide side : {kLhs, kRhs}) {
    const DotRole lines = side == kLhs ? kRows : kColumns;
    absl::InlinedVector<CopyAxis, 8> axes;
    int64_t stride = 1;
    for (const DotRole role : {kBatch, lines, kSummed}) {
      for (const DotAxis& axis : space.roles[role]) {
        axes.push_back({axis.size, axis.strides[side], stride});
        stride *= axis.size;
      }
      if (role == kBatch) stride = products_.step;
    }
    copies_[side] = StridedCopy(axes, SizeOf(dtype));
    panel_bytes_[side] = stride * SizeOf(dtype);
  }
}

void LaneProduct::Run(const char* lhs, const char* rhs, char* result, char* scratch) const {
  char* const right = scratch + panel_bytes_[kLhs];
  copies_[kLhs].Run(lhs, scratch);
  copies_[kRhs].Run(rhs, right);
  LaneProducts products = products_;
  products.a = scratch;
  products.b = right;
  products.c = result;
  multiply_(products);
}

}  // namespace tensord::cpu
