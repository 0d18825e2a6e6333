#include "backends/cuda/kernels/layout_kernels.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/kernels/copy_tiles.h"
#include "backends/cuda/kernels/index_text.h"
#include "gmock/gmock.h"
#include "tests/unit/backends/cuda/kernels/node_cases_test.h"

namespace tensord::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using LayoutKernelsTest = NodeCasesTest;

constexpr std::initializer_list<CoreOp> kLayoutOps = {
    CoreOp::kTranspose,   CoreOp::kReshape,    CoreOp::kBroadcastInDim,  CoreOp::kSlice,     CoreOp::kPad,
    CoreOp::kConcatenate, CoreOp::kReverse,    CoreOp::kExtractDiag,     CoreOp::kEmbedDiag, CoreOp::kTril,
    CoreOp::kTriu,        CoreOp::kPadToMatch, CoreOp::kDynamicTruncate, CoreOp::kShapeOf};

TEST_F(LayoutKernelsTest, ElementsOfEverySizeGoWhereTheReferencePutsThem) {
  ExpectAsReference(CasesOf(kLayoutOps, kSizes, 3), Values::kEdges);
}

TEST_F(LayoutKernelsTest, EveryDtypeIsMoved) { ExpectAsReference(CasesOf(kLayoutOps, kAnyDType, 1), Values::kEdges); }

TEST_F(LayoutKernelsTest, NoAccessIsOutOfBoundsAndNoneRaces) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  ExpectAsReference(CasesOf(kLayoutOps, DTypeSet{DType::kBool, DType::kF32}, 2), Values::kModest);
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

// Returns a concatenation of `count` operands whose sizes go through these along the axis.
NodeCase Joining(DType dtype, std::vector<int64_t> shape, int64_t axis, size_t count, std::vector<int64_t> sizes) {
  const OpDef& op = Def(CoreOp::kConcatenate);
  NodeCase joining{.name = absl::StrCat(count, " of ", Name(dtype), " along ", axis),
                   .op = &op,
                   .attrs = Attributes(op.attrs).Set("dimension", axis)};
  for (size_t k = 0; k < count; ++k) {
    shape[static_cast<size_t>(axis)] = sizes[k % sizes.size()];
    joining.operands.push_back({dtype, Shape(shape.begin(), shape.end())});
  }
  return joining;
}

TEST_F(LayoutKernelsTest, ManyOperandsAreJoined) {
  std::vector<NodeCase> cases;
  for (const DType dtype : {DType::kBool, DType::kF16, DType::kI32, DType::kC64, DType::kC128}) {
    cases.push_back(Joining(dtype, {16, 1, 3}, 1, 9, {1, 7, 0, 2}));       // runs of whole vectors
    cases.push_back(Joining(dtype, {1, 5}, 0, 33, {3, 1, 16, 0}));         // of parts of them
    cases.push_back(Joining(dtype, {1}, 0, 100, {1, 0, 2, 5000, 64, 0}));  // one run each
    cases.push_back(Joining(dtype, {1, 70}, 0, 65, {1}));                  // of one element
    cases.push_back(Joining(dtype, {32, 1}, 1, 40, {16, 64}));
  }
  ExpectAsReference(cases, Values::kEdges);
}

TEST_F(LayoutKernelsTest, NoJoinIsOutOfBounds) {
  hostCudaSet("CHECK", "1");
  const long before = hostCudaProblems();
  ExpectAsReference({Joining(DType::kF32, {4, 1, 3}, 1, 40, {1, 7, 0, 2}), Joining(DType::kBool, {1}, 0, 70, {17, 1})},
                    Values::kModest);
  EXPECT_EQ(hostCudaProblems(), before);
  hostCudaSet("CHECK", "");
}

class SectorsTest : public NodeCasesTest {
 protected:
  // Returns the bytes of sectors that a checked kernel touches for each byte that it has to move.
  double Traffic(const OpDef& op, Attributes attrs, std::vector<ConcreteType> operands) {
    hostCudaSet("CHECK", "1");
    HostCounts counts;
    hostCudaTakeCounts(&counts);
    const NodeCase node_case{.name = "case", .op = &op, .attrs = std::move(attrs), .operands = std::move(operands)};
    ExpectAsReference({node_case}, Values::kModest);
    hostCudaTakeCounts(&counts);
    hostCudaSet("CHECK", "");
    turns_ = counts.shared_requests == 0
                 ? 1
                 : static_cast<double>(counts.shared_turns) / static_cast<double>(counts.shared_requests);
    return static_cast<double>(counts.global_sectors) / static_cast<double>(counts.global_requests);
  }
  double turns_ = 0;  // of banks, a request to shared memory
};

TEST_F(SectorsTest, TransposesAndRowsTouchNoSectorInVain) {
  const OpDef& transpose = Def(CoreOp::kTranspose);
  const auto order = [&](std::vector<int64_t> permutation) {
    return Attributes(transpose.attrs).Set("permutation", std::move(permutation));
  };
  // 32 elements of 4 bytes are 4 sectors.
  EXPECT_LE(Traffic(transpose, order({1, 0}), {{DType::kF32, {256, 128}}}), 4.0);
  EXPECT_LE(turns_, 1.0);
  EXPECT_LE(Traffic(transpose, order({2, 0, 1}), {{DType::kF32, {64, 64, 64}}}), 4.0);
  EXPECT_LE(Traffic(transpose, order({1, 0}), {{DType::kBool, {256, 256}}}), 2.0);
  EXPECT_LE(turns_, 1.0);
  EXPECT_LE(Traffic(transpose, order({1, 0}), {{DType::kF64, {64, 64}}}), 8.0);
  EXPECT_LE(turns_, 2.0) << "a warp's 256 bytes take two turns";
  // A short axis shares its tile: rows of two elements are read as they lie.
  EXPECT_LE(Traffic(transpose, order({1, 0}), {{DType::kF32, {2, 4096}}}), 4.0);
  // 16 bytes a thread are 16 sectors a warp, and a quarter of the requests.
  const OpDef& slice = Def(CoreOp::kSlice);
  const Attributes middle = Attributes(slice.attrs)
                                .Set("start_indices", std::vector<int64_t>{0, 8})
                                .Set("limit_indices", std::vector<int64_t>{256, 136})
                                .Set("strides", std::vector<int64_t>{1, 1});
  const double sectors = Traffic(slice, middle, {{DType::kF32, {512, 256}}});
  EXPECT_LE(sectors, 16.0);
  EXPECT_GT(sectors, 15.0) << "rows go by vectors";
}

TEST_F(SectorsTest, WindowsAndPartsTouchNoSectorInVain) {
  using Ints = std::vector<int64_t>;
  // Rows of 512 bytes, wherever they begin.
  const OpDef& gather = Def(CoreOp::kGather);
  const Attributes rows = Attributes(gather.attrs)
                              .Set("slice_sizes", Ints{128, 1})
                              .Set("offset_dims", Ints{0})
                              .Set("collapsed_slice_dims", Ints{1})
                              .Set("start_index_map", Ints{1})
                              .Set("index_vector_dim", int64_t{1});
  EXPECT_LE(Traffic(gather, rows, {{DType::kF32, {128, 1000}}, {DType::kI32, {256}}}), 16.0);
  const OpDef& concatenate = Def(CoreOp::kConcatenate);
  EXPECT_LE(Traffic(concatenate, Attributes(concatenate.attrs).Set("dimension", int64_t{1}),
                    {{DType::kF32, {256, 100}}, {DType::kF32, {256, 60}}}),
            16.0);
  EXPECT_LE(Traffic(concatenate, Attributes(concatenate.attrs).Set("dimension", int64_t{1}),
                    std::vector<ConcreteType>(20, {DType::kF32, {256, 16}})),
            16.0);
  const OpDef& pad = Def(CoreOp::kPad);
  const Attributes edges = Attributes(pad.attrs)
                               .Set("edge_padding_low", Ints{0, 3})
                               .Set("edge_padding_high", Ints{0, 5})
                               .Set("interior_padding", Ints{0, 0});
  EXPECT_LE(Traffic(pad, edges, {{DType::kF32, {256, 100}}, {DType::kF32, {}}}), 16.0);
  const OpDef& broadcast = Def(CoreOp::kBroadcastInDim);
  EXPECT_LE(
      Traffic(
          broadcast,
          Attributes(broadcast.attrs).Set("shape", std::vector<DimExpr>{256, 100}).Set("broadcast_dimensions", Ints{0}),
          {{DType::kF32, {256}}}),
      16.0);
  // Tiles of a product: rows of 32 elements go to memory that is shared, from which all threads of a warp take what
  // they need in a turn or two.
  const OpDef& dot = Def(CoreOp::kDotGeneral);
  const Attributes product =
      Attributes(dot.attrs).Set("lhs_contracting_dimensions", Ints{1}).Set("rhs_contracting_dimensions", Ints{0});
  EXPECT_LE(Traffic(dot, product, {{DType::kI32, {128, 64}}, {DType::kI32, {64, 128}}}), 8.0);
  EXPECT_LE(turns_, 2.0);
}

TEST(CopyTilesTest, SidesAreTheFastestAxesOfEitherSide) {
  // [i, j] → [j, i] of 1000 x 600.
  const auto plain = TilesOf({{600, 1000, 1}, {1000, 1, 600}}, 4);
  ASSERT_TRUE(plain.has_value());
  EXPECT_THAT(plain->rows.axes, ElementsAre(CopyAxis{600, 1000, 1}));
  EXPECT_THAT(plain->columns.axes, ElementsAre(CopyAxis{1000, 1, 600}));
  EXPECT_EQ(plain->rows.part, 64);
  EXPECT_EQ(plain->columns.part, 64);
  EXPECT_EQ(plain->num_tiles(), 10 * 16);
  // Small axes together make a side.
  const auto many = TilesOf({{3, 50, 1}, {5, 10, 3}, {10, 1, 15}, {1000, 150, 150}}, 4);
  ASSERT_TRUE(many.has_value());
  EXPECT_GE(many->rows.elements, 64);
  EXPECT_FALSE(TilesOf({{8, 1, 1}, {9, 20, 8}}, 4).has_value()) << "rows are runs";
  EXPECT_FALSE(TilesOf({{8, 0, 1}, {9, 1, 8}}, 4).has_value()) << "rows repeat an element";
  EXPECT_FALSE(TilesOf({{8, 3, 1}, {9, 24, 8}}, 4).has_value()) << "no axis steps by one in the source";
}

TEST(IndexTextTest, PlacesBeyond31BitsAreComputedIn64) {
  EXPECT_EQ(OffsetText({{"i0", 1 << 16, 1}, {"i1", 1 << 14, 1 << 16}}), "i0 + i1 * 65536");
  EXPECT_EQ(OffsetText({{"i0", 1 << 16, 1}, {"i1", 1 << 16, 1 << 16}}), "(i64)i0 + (i64)i1 * 65536");
  EXPECT_EQ(OffsetText({{"i0", 7, -1}}), "(i32)i0 * -1");
  EXPECT_EQ(OffsetText({{"i0", 2, int64_t{1} << 40}}), "(i64)i0 * 1099511627776ll");
  EXPECT_EQ(IndexType(int64_t{1} << 31), "u32");
  EXPECT_EQ(IndexType((int64_t{1} << 31) + 1), "u64");
}

}  // namespace
}  // namespace tensord::cuda
