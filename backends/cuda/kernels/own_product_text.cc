#include "backends/cuda/kernels/own_product_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/codegen/launch_parts.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/index_text.h"
#include "backends/cuda/kernels/product_arithmetic.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kProductThreads = 256;  // 16 x 16
constexpr int64_t kThreadsASide = 16;
constexpr int64_t kMostTile = 64;
constexpr int64_t kSlice = 16;          // terms of a slice
constexpr int64_t kSlicesOfAPart = 16;  // that are added up before their sum is
constexpr int64_t kProductBlocksPerProcessor = 64;

int64_t ProductTile(int64_t size) {
  return std::clamp(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))), kThreadsASide, kMostTile);
}

class OwnProductPrinter {
 public:
  OwnProductPrinter(const ProductSpace& space, Algebra algebra, DType operands, DType result,
                    const CudaOptions& options)
      : space_(space),
        operands_(operands),
        result_(result),
        options_(options),
        arithmetic_(algebra, operands, result, &lines_.prelude()),
        tiles_{ProductTile(space.Size(kRows)), ProductTile(space.Size(kColumns))},
        row_tiles_(CeilDiv(space.Size(kRows), tiles_[kLhs])),
        column_tiles_(CeilDiv(space.Size(kColumns), tiles_[kRhs])),
        num_tiles_(row_tiles_ * column_tiles_ * space.Size(kBatch)) {
    ShareSums();
  }

  KernelText Print() {
    const int64_t all = num_tiles_ * shares_;
    // Blocks that add to the same slot are in launches that follow one another.
    const int64_t parts = std::max(CudaLaunchParts(Steps(), all, options_), CeilDiv(shares_, slots_));
    const int64_t blocks =
        is_shared() ? all : std::min(all, parts * options_.num_processors * kProductBlocksPerProcessor);
    KernelText text;
    text.launches.push_back(
        {.entry = "product", .blocks = blocks, .threads_per_block = kProductThreads, .parts = parts});
    const std::string memory(CudaStorage(operands_));
    if (arithmetic_.uses_functions()) lines_.Raw(ProductArithmetic::kFunctions);
    lines_.Open("extern \"C\" __global__ void __launch_bounds__(", kProductThreads, ") product(",
                parts > 1 ? "u64 first_block, " : "", "const ", memory, "* __restrict__ lhs, const ", memory,
                "* __restrict__ rhs, ", is_shared() ? arithmetic_.type() : std::string(CudaStorage(result_)),
                "* __restrict__ ", is_shared() ? "slots" : "result", ")");
    const std::string& type = arithmetic_.type();
    if (space_.Size(kSummed) > 0) {
      lines_.Line("__shared__ ", type, " a[", kSlice * Pitch(kLhs), "], b[", kSlice * Pitch(kRhs), "];");
    }
    lines_.Line("const u32 tr = threadIdx.x % ", kThreadsASide, "u, tc = threadIdx.x / ", kThreadsASide, "u;");
    lines_.Open("for (u64 t = ", parts > 1 ? "first_block + " : "", "blockIdx.x; t < ", all, "ull; t += ", blocks,
                "ull)");
    if (is_shared()) lines_.Line("const u64 tile = t % ", num_tiles_, "ull, share = t / ", num_tiles_, "ull;");
    WriteTile(is_shared() ? "tile" : "t");
    WriteSums();
    if (is_shared()) {
      WriteSlots();
    } else {
      lines_.Line("const i64 base = ", ResultOffset(kBatch, "batch"), ";");
      OverSums();
      WriteResult(absl::StrCat("row + tr + r * ", kThreadsASide, "u"),
                  absl::StrCat("column + tc + c * ", kThreadsASide, "u"), absl::StrCat(result_name_, "[r][c]"));
      CloseOver();
    }
    lines_.Close();
    lines_.Close();
    if (is_shared()) WriteJoin(&text);
    text.source = lines_.Source();
    return text;
  }

 private:
  bool is_shared() const { return shares_ > 1; }
  int64_t tile_elements() const { return tiles_[kLhs] * tiles_[kRhs]; }

  // Lets blocks share the sums of a tile where there are fewer tiles than the device, or a cut launch, wants blocks.
  void ShareSums() {
    const int64_t terms = space_.Size(kSummed), elements = num_tiles_ * tile_elements();
    if (terms < 2 * options_.terms_per_share || elements > options_.most_shared_sums) return;
    const int64_t parts = CudaLaunchParts(Steps(), std::numeric_limits<int64_t>::max(), options_);
    const int64_t wanted = CeilDiv(parts * options_.num_processors * kLeastBlocksOfPart, num_tiles_);
    const int64_t most = terms / options_.terms_per_share;
    terms_of_block_ = RoundUp(CeilDiv(terms, std::clamp<int64_t>(wanted, 1, most)), kSlice * kSlicesOfAPart);
    shares_ = CeilDiv(terms, terms_of_block_);
    slots_ = std::min(shares_, options_.most_shared_sums / elements);
  }

  // Declares the first row, the first column and the batch of a tile.
  void WriteTile(const std::string& tile) {
    lines_.Line("const u64 row = ", tile, " % ", row_tiles_, "ull * ", tiles_[kLhs], "ull, column = ", tile, " / ",
                row_tiles_, "ull % ", column_tiles_, "ull * ", tiles_[kRhs], "ull;");
    if (space_.Size(kBatch) > 1) lines_.Line("const u64 batch = ", tile, " / ", row_tiles_ * column_tiles_, "ull;");
  }

  // Writes a block's sums into its tile's slot, or adds them to those of a launch before.
  void WriteSlots() {
    lines_.Line(arithmetic_.type(), "* const slot = slots + (tile * ", slots_, "ull + share % ", slots_, "ull) * ",
                tile_elements(), "ull;");
    OverSums();
    lines_.Line(arithmetic_.type(), "& sum = slot[tr + r * ", kThreadsASide, "u + (tc + c * ", kThreadsASide, "u) * ",
                tiles_[kLhs], "u];");
    const std::string mine = absl::StrCat(result_name_, "[r][c]");
    if (shares_ == slots_) {
      lines_.Line("sum = ", mine, ";");
    } else {
      lines_.Line("sum = share < ", slots_, "ull ? ", mine, " : ", arithmetic_.Add("sum", mine), ";");
    }
    CloseOver();
  }

  // Prints the entry that adds up the slots of each tile, in order.
  void WriteJoin(KernelText* text) {
    text->launches[0].arguments = {0, 1, 3};
    text->scratch_bytes = num_tiles_ * slots_ * tile_elements() * arithmetic_.type_bytes();
    text->spread = absl::StrCat("and sums of ", terms_of_block_, " terms");
    const int64_t all = num_tiles_ * tile_elements();
    const int64_t blocks =
        std::min(CeilDiv(all, kProductThreads), options_.num_processors * kProductBlocksPerProcessor);
    text->launches.push_back(
        {.entry = "join", .blocks = blocks, .threads_per_block = kProductThreads, .arguments = {2, 3}});
    const std::string& type = arithmetic_.type();
    lines_.Open("extern \"C\" __global__ void __launch_bounds__(", kProductThreads, ") join(", CudaStorage(result_),
                "* __restrict__ result, const ", type, "* __restrict__ slots)");
    lines_.Open("for (u64 e = blockIdx.x * ", kProductThreads, "ull + threadIdx.x; e < ", all,
                "ull; e += ", blocks * kProductThreads, "ull)");
    lines_.Line("const u64 tile = e / ", tile_elements(), "ull, place = e % ", tile_elements(), "ull;");
    WriteTile("tile");
    lines_.Line("const ", type, "* const first = slots + tile * ", slots_ * tile_elements(), "ull + place;");
    lines_.Line(type, " sum = *first;");
    lines_.Raw("#pragma unroll 4");
    lines_.Open("for (u64 s = 1; s < ", slots_, "ull; ++s)");
    lines_.Line("sum = ", arithmetic_.Add("sum", absl::StrCat("first[s * ", tile_elements(), "ull]")), ";");
    lines_.Close();
    lines_.Line("const i64 base = ", ResultOffset(kBatch, "batch"), ";");
    WriteResult(absl::StrCat("row + place % ", tiles_[kLhs], "ull"),
                absl::StrCat("column + place / ", tiles_[kLhs], "ull"), "sum");
    lines_.Close();
    lines_.Close();
  }

  // Returns the work of all products, as CudaLaunchParts counts it.
  double Steps() const {
    // Tiles are computed whole.
    const double products = static_cast<double>(num_tiles_) * static_cast<double>(tile_elements()) *
                            static_cast<double>(space_.Size(kSummed));
    return products * static_cast<double>(std::max<int64_t>(2, SizeOf(operands_)));
  }

  static constexpr DotRole RoleOf(DotSide side) { return FreeRole(side); }
  int64_t SumsOf(DotSide side) const { return tiles_[side] / kThreadsASide; }  // of a thread
  int64_t Pitch(DotSide side) const { return tiles_[side] + 1; }

  void WriteSums() {
    const std::string& type = arithmetic_.type();
    const int64_t rows = SumsOf(kLhs), columns = SumsOf(kRhs), terms = space_.Size(kSummed);
    const bool in_parts = arithmetic_.rounds() && terms > kSlice * kSlicesOfAPart;
    lines_.Line(type, " sums[", rows, "][", columns, "];");
    if (in_parts) lines_.Line(type, " wholes[", rows, "][", columns, "];");
    OverSums();
    lines_.Line("sums[r][c] = ", arithmetic_.zero(), ";");
    if (in_parts) lines_.Line("wholes[r][c] = ", arithmetic_.zero(), ";");
    CloseOver();
    if (terms == 0) return;
    if (is_shared()) {
      lines_.Line("const u64 begin = share * ", terms_of_block_, "ull, end = begin + ", terms_of_block_, "ull < ",
                  terms, "ull ? begin + ", terms_of_block_, "ull : ", terms, "ull;");
    }
    lines_.Open("for (u64 first = ", is_shared() ? "begin" : "0", "; first < ",
                is_shared() ? std::string("end") : absl::StrCat(terms, "ull"), "; first += ", kSlice, "ull)");
    for (const DotSide side : {kLhs, kRhs}) WriteLoad(side);
    lines_.Line("__syncthreads();");
    lines_.Raw("#pragma unroll 4");
    lines_.Open("for (u32 k = 0; k < ", kSlice, "u; ++k)");
    lines_.Line(type, " x[", rows, "], y[", columns, "];");
    for (const DotSide side : {kLhs, kRhs}) {
      lines_.Raw("#pragma unroll");
      lines_.Line("for (int j = 0; j < ", SumsOf(side), "; ++j) ", side == kLhs ? "x" : "y",
                  "[j] = ", side == kLhs ? "a" : "b", "[k * ", Pitch(side), "u + ", side == kLhs ? "tr" : "tc",
                  " + j * ", kThreadsASide, "u];");
    }
    OverSums();
    lines_.Line("sums[r][c] = ", arithmetic_.Add("sums[r][c]", arithmetic_.Multiply("x[r]", "y[c]")), ";");
    CloseOver();
    lines_.Close();
    if (in_parts) {
      const int64_t part = kSlice * kSlicesOfAPart;
      lines_.Open("if ((first + ", kSlice, "ull) % ", part, "ull == 0)");
      OverSums();
      lines_.Line("wholes[r][c] = ", arithmetic_.Add("wholes[r][c]", "sums[r][c]"), ";");
      lines_.Line("sums[r][c] = ", arithmetic_.zero(), ";");
      CloseOver();
      lines_.Close();
    }
    lines_.Line("__syncthreads();");
    lines_.Close();
    if (in_parts && terms % (kSlice * kSlicesOfAPart) != 0) {
      OverSums();
      lines_.Line("wholes[r][c] = ", arithmetic_.Add("wholes[r][c]", "sums[r][c]"), ";");
      CloseOver();
    }
    result_name_ = in_parts ? "wholes" : "sums";
  }

  void OverSums() {
    lines_.Raw("#pragma unroll");
    lines_.Open("for (int r = 0; r < ", SumsOf(kLhs), "; ++r)");
    lines_.Raw("#pragma unroll");
    lines_.Open("for (int c = 0; c < ", SumsOf(kRhs), "; ++c)");
  }
  void CloseOver() {
    lines_.Close();
    lines_.Close();
  }

  // Loads a slice of an operand into shared memory. Neighbouring threads take neighbours of memory.
  void WriteLoad(DotSide side) {
    const DotRole role = RoleOf(side);
    const int64_t tile = tiles_[side];
    const auto steps_by_one = [&](DotRole of) {
      const DotAxisList& axes = space_.axes.roles[of];
      return !axes.empty() && axes[0].size > 1 && axes[0].strides[side] == 1;
    };
    const bool terms_first = steps_by_one(kSummed) && !steps_by_one(role);
    lines_.Raw("#pragma unroll 2");
    lines_.Open("for (u32 e = threadIdx.x; e < ", kSlice * tile, "u; e += ", kProductThreads, "u)");
    if (terms_first) {
      lines_.Line("const u32 dk = e % ", kSlice, "u, df = e / ", kSlice, "u;");
    } else {
      lines_.Line("const u32 df = e % ", tile, "u, dk = e / ", tile, "u;");
    }
    lines_.Line("const u64 f = ", side == kLhs ? "row" : "column", " + df, k = first + dk;");
    lines_.Line(arithmetic_.type(), " x = ", arithmetic_.zero(), ";");
    lines_.Open("if (f < ", space_.Size(role), "ull && k < ", space_.Size(kSummed), "ull)");
    const std::string operand = side == kLhs ? "lhs" : "rhs";
    const std::string conditions = WriteElement(side, role);
    if (conditions.empty()) {
      lines_.Line("x = ", arithmetic_.Factor(absl::StrCat(operand, "[at]"), space_.conjugates[side]), ";");
    } else {
      lines_.Line("if (", conditions,
                  ") x = ", arithmetic_.Factor(absl::StrCat(operand, "[at]"), space_.conjugates[side]), ";");
    }
    lines_.Close();
    lines_.Line(side == kLhs ? "a" : "b", "[dk * ", Pitch(side), "u + df] = x;");
    lines_.Close();
  }

  // Declares "const i64 at" for the element at f, k and the batch; returns the conditions under which it is there.
  std::string WriteElement(DotSide side, DotRole role) {
    const std::pair<DotRole, std::string> indices[] = {{role, "f"}, {kSummed, "k"}, {kBatch, "batch"}};
    const std::vector<ProductSpace::Bound>& bounds = space_.bounds[side];
    std::vector<std::string> places;
    for (const ProductSpace::Bound& bound : bounds) places.push_back(absl::StrCat(bound.start, "ll"));
    std::string at = absl::StrCat(space_.offsets[side], "ll");
    for (const auto& [of, variable] : indices) {
      const DotAxisList& axes = space_.axes.roles[of];
      std::vector<int64_t> sizes;
      std::vector<bool> needed;
      for (size_t d = 0; d < axes.size(); ++d) {
        sizes.push_back(axes[d].size);
        needed.push_back(axes[d].strides[side] != 0 ||
                         std::any_of(bounds.begin(), bounds.end(), [&, role_of = of](const ProductSpace::Bound& bound) {
                           return bound.steps[role_of][d] != 0;
                         }));
      }
      const std::vector<std::string> names = WriteCoordinates(&lines_, variable, sizes, variable, needed);
      for (size_t d = 0; d < axes.size(); ++d) {
        if (names[d] == "0") continue;
        const std::string coordinate = absl::StrCat(" + (i64)", names[d], " * ");
        if (axes[d].strides[side] != 0) absl::StrAppend(&at, coordinate, axes[d].strides[side], "ll");
        for (size_t b = 0; b < bounds.size(); ++b) {
          if (bounds[b].steps[of][d] != 0) absl::StrAppend(&places[b], coordinate, bounds[b].steps[of][d], "ll");
        }
      }
    }
    lines_.Line("const i64 at = ", at, ";");
    std::vector<std::string> conditions;
    for (size_t b = 0; b < bounds.size(); ++b) {
      lines_.Line("const i64 place", b, " = ", places[b], ";");
      conditions.push_back(absl::StrCat("(u64)place", b, " < ", bounds[b].size, "ull"));
    }
    return absl::StrJoin(conditions, " && ");
  }

  // Writes an element of the result, if there is one of that row and column; `base` is the batch's.
  void WriteResult(const std::string& row, const std::string& column, const std::string& sum) {
    lines_.Line("const u64 m = ", row, ", n = ", column, ";");
    lines_.Open("if (m < ", space_.Size(kRows), "ull && n < ", space_.Size(kColumns), "ull)");
    const std::string rows = ResultOffset(kRows, "m"), columns = ResultOffset(kColumns, "n");
    lines_.Line("result[base + ", rows, " + ", columns, "] = ", arithmetic_.Rounded(sum), ";");
    lines_.Close();
  }
  std::string ResultOffset(DotRole role, const std::string& variable) {
    std::vector<int64_t> sizes;
    for (const DotAxis& axis : space_.axes.roles[role]) sizes.push_back(axis.size);
    const std::vector<std::string> names = WriteCoordinates(&lines_, variable, sizes, absl::StrCat("o", variable));
    std::vector<std::string> terms;
    for (size_t d = 0; d < names.size(); ++d) {
      if (names[d] == "0") continue;
      terms.push_back(absl::StrCat("(i64)", names[d], " * ", space_.axes.roles[role][d].strides[kDotResult], "ll"));
    }
    return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
  }

  const ProductSpace& space_;
  const DType operands_;
  const DType result_;
  const CudaOptions& options_;
  CudaLines lines_;
  ProductArithmetic arithmetic_;
  const std::array<int64_t, 2> tiles_;
  const int64_t row_tiles_, column_tiles_, num_tiles_;
  int64_t shares_ = 1;          // blocks of a tile's sums
  int64_t terms_of_block_ = 0;  // where they are shared
  int64_t slots_ = 1;           // of a tile, for its blocks' sums
  std::string result_name_ = "sums";
};

}  // namespace

KernelText OwnProductText(const ProductSpace& space, Algebra algebra, DType operands, DType result,
                          const CudaOptions& options) {
  return OwnProductPrinter(space, algebra, operands, result, options).Print();
}

}  // namespace tensord::cuda
