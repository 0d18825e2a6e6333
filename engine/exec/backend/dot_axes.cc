#include "engine/exec/backend/dot_axes.h"

#include <algorithm>
#include <utility>

namespace tensord {
namespace {

bool Has(absl::Span<const int64_t> axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

}  // namespace

int64_t NumElements(const DotAxisList& axes) {
  int64_t elements = 1;
  for (const DotAxis& axis : axes) elements *= axis.size;
  return elements;
}

DotAxisList MergeAxes(const DotAxisList& axes) {
  DotAxisList merged;
  for (const DotAxis& axis : axes) {
    if (axis.size == 1) continue;
    bool continues = !merged.empty();
    for (size_t side = 0; continues && side < kNumDotSides; ++side) {
      continues = axis.strides[side] == merged.back().strides[side] * merged.back().size;
    }
    if (continues) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

DotAxisList MergeOn(DotSide side, const DotAxisList& axes) {
  DotAxisList merged;
  for (const DotAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!merged.empty() && axis.strides[side] == merged.back().strides[side] * merged.back().size) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back({axis.size, {}});
      merged.back().strides[side] = axis.strides[side];
    }
  }
  if (merged.empty()) merged.push_back({1, {0, 0, 0}});
  return merged;
}

DotAxisList SortedBy(DotSide side, DotAxisList axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [side](const DotAxis& a, const DotAxis& b) { return a.strides[side] < b.strides[side]; });
  return axes;
}

int64_t OffsetOf(DotSide side, absl::Span<const DotAxis> axes, int64_t index) {
  int64_t offset = 0;
  for (const DotAxis& axis : axes) {
    offset += index % axis.size * axis.strides[side];
    index /= axis.size;
  }
  return offset;
}

DotSpace ClassifyAxes(const Shape& lhs, const Shape& rhs, const DotAxes& axes) {
  const Shape lhs_strides = ColumnMajorStrides(lhs);
  const Shape rhs_strides = ColumnMajorStrides(rhs);
  DotSpace space;
  struct ResultAxis {
    DotRole role;
    DotAxis axis;
  };
  absl::InlinedVector<ResultAxis, 8> product;
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (Has(axes.lhs_contracting, i) || Has(axes.lhs_batch, i)) continue;
    product.push_back({kRows, {lhs[i], {lhs_strides[i], 0, 0}}});
  }
  for (size_t i = 0; i < rhs.size(); ++i) {
    if (Has(axes.rhs_contracting, i) || Has(axes.rhs_batch, i)) continue;
    product.push_back({kColumns, {rhs[i], {0, rhs_strides[i], 0}}});
  }
  const auto pair = [&](int64_t left, int64_t right) -> DotAxis {
    const size_t l = static_cast<size_t>(left), r = static_cast<size_t>(right);
    return {lhs[l], {lhs_strides[l], rhs_strides[r], 0}};
  };
  for (size_t i = 0; i < axes.lhs_batch.size(); ++i) {
    product.push_back({kBatch, pair(axes.lhs_batch[i], axes.rhs_batch[i])});
  }
  int64_t result_stride = 1;
  for (size_t i = 0; i < product.size(); ++i) {
    const size_t from = axes.result_permutation.empty() ? i : static_cast<size_t>(axes.result_permutation[i]);
    ResultAxis& next = product[from];
    next.axis.strides[kDotResult] = result_stride;
    result_stride *= next.axis.size;
    space.roles[next.role].push_back(next.axis);
  }
  for (size_t i = 0; i < axes.lhs_contracting.size(); ++i) {
    space.roles[kSummed].push_back(pair(axes.lhs_contracting[i], axes.rhs_contracting[i]));
  }
  if (space.Size(kSummed) == 0) {
    space.roles[kSummed] = {{0, {0, 0, 0}}};
    for (DotAxisList& role : space.roles) {
      for (DotAxis& axis : role) axis.strides[kLhs] = axis.strides[kRhs] = 0;
    }
  }
  for (DotAxisList& role : space.roles) role = MergeAxes(role);
  return space;
}

DotSpace Swapped(DotSpace space) {
  std::swap(space.roles[kRows], space.roles[kColumns]);
  for (DotAxisList& role : space.roles) {
    for (DotAxis& axis : role) std::swap(axis.strides[kLhs], axis.strides[kRhs]);
  }
  return space;
}

void LayResultDensely(DotSpace* space) {
  int64_t stride = 1;
  for (DotRole role : {kRows, kColumns, kBatch}) {
    for (DotAxis& axis : space->roles[role]) {
      axis.strides[kDotResult] = stride;
      stride *= axis.size;
    }
  }
}

DotAxes DotAxesOf(const Attributes& attrs) {
  return {attrs.Ints("lhs_contracting_dimensions"),
          attrs.Ints("rhs_contracting_dimensions"),
          attrs.Ints("lhs_batching_dimensions"),
          attrs.Ints("rhs_batching_dimensions"),
          attrs.Int("lhs_conj") != 0,
          attrs.Int("rhs_conj") != 0,
          attrs.Ints("result_permutation")};
}

DotSpace DotSpaceOf(const BoundInstruction& instruction) {
  return ClassifyAxes(instruction.operands[0].shape, instruction.operands[1].shape, DotAxesOf(*instruction.attrs));
}

}  // namespace tensord
