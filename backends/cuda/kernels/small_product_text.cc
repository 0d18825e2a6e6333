#include "backends/cuda/kernels/small_product_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/index_text.h"
#include "backends/cuda/kernels/product_arithmetic.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kSmallSide = 32;
constexpr int64_t kSmallBatch = 64;  // below, a thread an element leaves processors idle
constexpr int64_t kSmallProductThreads = 256;
constexpr int64_t kSmallProductBlocksPerProcessor = 32;

// Writes the coordinates of an index over a role's axes, and returns the place that they have on a side.
std::string WritePlace(const ProductSpace& space, DotRole role, DotSide side, const std::string& variable,
                       CudaLines* lines) {
  const DotAxisList& axes = space.axes.roles[role];
  std::vector<int64_t> sizes;
  std::vector<bool> needed;
  for (const DotAxis& axis : axes) {
    sizes.push_back(axis.size);
    needed.push_back(axis.strides[side] != 0);
  }
  static constexpr const char* kSides[] = {"l", "r", "o"};
  const std::vector<std::string> names =
      WriteCoordinates(lines, variable, sizes, absl::StrCat(variable, kSides[side]), needed);
  std::vector<OffsetTerm> terms;
  for (size_t d = 0; d < axes.size(); ++d) terms.push_back({names[d], axes[d].size, axes[d].strides[side]});
  return OffsetText(terms);
}

}  // namespace

bool IsSmallProduct(const ProductSpace& space) {
  return space.Size(kRows) <= kSmallSide && space.Size(kColumns) <= kSmallSide && space.Size(kSummed) <= kSmallSide &&
         space.Size(kSummed) > 0 && space.Size(kBatch) >= kSmallBatch && space.bounds[kLhs].empty() &&
         space.bounds[kRhs].empty();
}

KernelText SmallProductText(const ProductSpace& space, Algebra algebra, DType operands, DType result,
                            const CudaOptions& options) {
  const int64_t rows = space.Size(kRows), columns = space.Size(kColumns), terms = space.Size(kSummed);
  const int64_t count = rows * columns * space.Size(kBatch);
  const int64_t blocks =
      std::min(CeilDiv(count, kSmallProductThreads), int64_t{options.num_processors} * kSmallProductBlocksPerProcessor);
  KernelText text;
  text.launches.push_back({.entry = "products", .blocks = blocks, .threads_per_block = kSmallProductThreads});
  CudaLines lines;
  ProductArithmetic arithmetic(algebra, operands, result, &lines.prelude());
  if (arithmetic.uses_functions()) lines.Raw(ProductArithmetic::kFunctions);
  const absl::string_view memory = CudaStorage(operands), index = IndexType(count), suffix = IndexSuffix(count);
  lines.Open("extern \"C\" __global__ void __launch_bounds__(", kSmallProductThreads, ") products(const ", memory,
             "* __restrict__ lhs, const ", memory, "* __restrict__ rhs, ", CudaStorage(result),
             "* __restrict__ result)");
  lines.Open("for (", index, " i = blockIdx.x * (", index, ")", kSmallProductThreads, " + threadIdx.x; i < ", count,
             suffix, "; i += (", index, ")", blocks * kSmallProductThreads, ")");
  const std::vector<std::string> names = WriteCoordinates(&lines, "i", {rows, columns, space.Size(kBatch)}, "i");
  const auto place = [&](DotRole role, DotSide side, const std::string& variable) {
    return WritePlace(space, role, side, variable, &lines);
  };
  for (const DotSide side : {kLhs, kRhs}) {
    const std::string free = place(FreeRole(side), side, names[FreeRole(side)]);
    const std::string batch = place(kBatch, side, names[2]);
    lines.Line("const i64 ", side == kLhs ? "l" : "r", " = (i64)(", free, ") + (i64)(", batch, ") + ",
               space.offsets[side], "ll;");
  }
  lines.Line(arithmetic.type(), " sum = ", arithmetic.zero(), ";");
  lines.Raw("#pragma unroll");
  lines.Open("for (u32 k = 0; k < ", terms, "u; ++k)");
  const std::string lhs = place(kSummed, kLhs, "k"), rhs = place(kSummed, kRhs, "k");
  lines.Line("const ", arithmetic.type(),
             " x = ", arithmetic.Factor(absl::StrCat("lhs[l + ", lhs, "]"), space.conjugates[kLhs]), ";");
  lines.Line("const ", arithmetic.type(),
             " y = ", arithmetic.Factor(absl::StrCat("rhs[r + ", rhs, "]"), space.conjugates[kRhs]), ";");
  lines.Line("sum = ", arithmetic.Add("sum", arithmetic.Multiply("x", "y")), ";");
  lines.Close();
  const std::string row = place(kRows, kDotResult, names[0]), column = place(kColumns, kDotResult, names[1]);
  const std::string batch = place(kBatch, kDotResult, names[2]);
  lines.Line("result[(i64)(", row, ") + (i64)(", column, ") + (i64)(", batch, ")] = ", arithmetic.Rounded("sum"), ";");
  lines.Close();
  lines.Close();
  text.source = lines.Source();
  return text;
}

}  // namespace tensord::cuda
