#include "backends/cpu/contraction/tiled_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/pool_of.h"

namespace tensord::cpu {
namespace {

struct GemmSizes {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool interleaves = false;  // rows and columns in the result
};

// Axes with random strides: roles may be cut into two axes, which lie in any order, with gaps of some elements.
class Layout {
 public:
  Layout(const GemmSizes& sizes, std::mt19937& random) : random_(random) {
    const DotAxisList roles[] = {Split(sizes.m), Split(sizes.n), Split(sizes.k), {{sizes.batch, {0, 0, 0}}}};
    for (size_t role = 0; role < kNumDotRoles; ++role) space.roles[role] = roles[role];
    elements[kLhs] = Lay(kLhs, {kRows, kSummed, kBatch});
    elements[kRhs] = Lay(kRhs, {kColumns, kSummed, kBatch});
    std::vector<DotAxis*> axes;
    for (DotRole role : {kRows, kColumns, kBatch}) {
      for (DotAxis& axis : space.roles[role]) axes.push_back(&axis);
    }
    if (sizes.interleaves) std::shuffle(axes.begin() + 1, axes.end(), random_);
    int64_t stride = 1;
    for (DotAxis* axis : axes) {
      axis->strides[kDotResult] = stride;
      stride *= axis->size;
    }
    elements[kDotResult] = stride;
  }

  // Offsets of the elements of a role.
  std::vector<int64_t> Offsets(DotSide side, DotRole role) const {
    std::vector<int64_t> offsets = {0};
    for (const DotAxis& axis : space.roles[role]) {
      std::vector<int64_t> next;
      for (int64_t i = 0; i < axis.size; ++i) {
        for (int64_t offset : offsets) next.push_back(offset + i * axis.strides[side]);
      }
      offsets = next;
    }
    return offsets;
  }

  DotSpace space;
  int64_t elements[kNumDotSides];

 private:
  DotAxisList Split(int64_t size) {
    DotAxisList axes;
    for (int64_t factor : {2, 3, 5, 16}) {
      if (size % factor == 0 && size > factor && random_() % 3 == 0) {
        axes.push_back({factor, {0, 0, 0}});
        size /= factor;
      }
    }
    axes.push_back({size, {0, 0, 0}});
    std::shuffle(axes.begin(), axes.end(), random_);
    return axes;
  }

  int64_t Lay(DotSide side, std::initializer_list<DotRole> roles) {
    std::vector<DotAxis*> axes;
    for (DotRole role : roles) {
      for (DotAxis& axis : space.roles[role]) axes.push_back(&axis);
    }
    if (random_() % 2 == 0) std::shuffle(axes.begin(), axes.end(), random_);
    int64_t stride = random_() % 8 == 0 ? 2 : 1;
    int64_t last = 0;
    for (DotAxis* axis : axes) {
      axis->strides[side] = stride;
      last += (axis->size - 1) * stride;
      stride = stride * axis->size + (random_() % 4 == 0 ? 3 : 0);
    }
    return last + 1;
  }

  std::mt19937& random_;
};

template <typename T>
std::vector<T> SmallIntegers(int64_t count, std::mt19937& random) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(static_cast<int>(random() % 7) - 3);
  return values;
}

template <typename T>
std::vector<T> Run(const Layout& layout, const std::vector<T>& lhs, const std::vector<T>& rhs, std::vector<T> result,
                   bool accumulates, int threads) {
  const TiledGemm gemm = *TiledGemm::Plan(layout.space, kDTypeOf<T>);
  std::vector<char> storage(static_cast<size_t>(gemm.scratch_bytes()) + 64, '\xff');
  char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  gemm.Run(reinterpret_cast<const char*>(lhs.data()), reinterpret_cast<const char*>(rhs.data()),
           reinterpret_cast<char*>(result.data()), scratch, accumulates, PoolOf(threads));
  return result;
}

// The same, put together from pieces, each of which gets its result times `factor` when it is finished. Not everything
// can be made in blocks.
template <typename T>
std::vector<T> RunInPieces(const Layout& layout, const std::vector<T>& lhs, const std::vector<T>& rhs,
                           std::vector<T> result, bool accumulates, bool in_blocks, T factor, int threads) {
  const TiledGemm gemm = *TiledGemm::Plan(layout.space, kDTypeOf<T>);
  const int64_t block_bytes = gemm.block_bytes();
  std::vector<char> storage(static_cast<size_t>(gemm.scratch_bytes() + 64), '\xff');
  std::vector<char> blocks(static_cast<size_t>(in_blocks ? gemm.slots() * block_bytes : 0), '\xff');
  std::vector<std::atomic<int>> finished(result.size());
  const auto finish = [&](const GemmPiece& piece) {
    ASSERT_LT(piece.slot, gemm.slots());
    for (int64_t j = 0; j < piece.columns; ++j) {
      const T* const column = reinterpret_cast<const T*>(piece.elements) + j * piece.elements_step;
      for (int64_t i = 0; i < piece.rows; ++i) {
        const size_t place = static_cast<size_t>(piece.first + j * piece.first_step + i);
        ++finished[place];
        result[place] = column[i] * factor;
      }
    }
  };
  const GemmEpilogue epilogue = {.finish = finish, .blocks = in_blocks ? blocks.data() : nullptr};
  gemm.Run(reinterpret_cast<const char*>(lhs.data()), reinterpret_cast<const char*>(rhs.data()),
           in_blocks ? nullptr : reinterpret_cast<char*>(result.data()),
           storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64), accumulates, PoolOf(threads),
           &epilogue);
  EXPECT_TRUE(std::all_of(finished.begin(), finished.end(), [](const auto& count) { return count == 1; }));
  return result;
}

// Allocates exactly the elements that there are, so that a sanitizer sees accesses beyond them.
template <typename T>
void Check(const GemmSizes& sizes, std::mt19937& random) {
  const Layout layout(sizes, random);
  if (!TiledGemm::IsFastest(layout.space, kDTypeOf<T>)) return;
  SCOPED_TRACE(
      absl::StrCat(sizeof(T), " bytes, m ", sizes.m, ", n ", sizes.n, ", k ", sizes.k, ", batch ", sizes.batch));
  const auto lhs = SmallIntegers<T>(layout.elements[kLhs], random);
  const auto rhs = SmallIntegers<T>(layout.elements[kRhs], random);
  const bool accumulates = random() % 2 == 0;
  const T before = accumulates ? T(5) : std::numeric_limits<T>::quiet_NaN();
  std::vector<T> expected(static_cast<size_t>(layout.elements[kDotResult]), before);
  const auto rows = layout.Offsets(kLhs, kRows), columns = layout.Offsets(kRhs, kColumns);
  const auto lhs_terms = layout.Offsets(kLhs, kSummed), rhs_terms = layout.Offsets(kRhs, kSummed);
  const auto lhs_batch = layout.Offsets(kLhs, kBatch), rhs_batch = layout.Offsets(kRhs, kBatch);
  const auto result_rows = layout.Offsets(kDotResult, kRows), result_columns = layout.Offsets(kDotResult, kColumns),
             result_batch = layout.Offsets(kDotResult, kBatch);
  for (size_t b = 0; b < lhs_batch.size(); ++b) {
    for (size_t j = 0; j < columns.size(); ++j) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t row = rows[i], column = columns[j];
        T sum = accumulates ? before : T(0);
        for (size_t p = 0; p < lhs_terms.size(); ++p) {
          sum += lhs[static_cast<size_t>(row + lhs_terms[p] + lhs_batch[b])] *
                 rhs[static_cast<size_t>(column + rhs_terms[p] + rhs_batch[b])];
        }
        expected[static_cast<size_t>(result_rows[i] + result_columns[j] + result_batch[b])] = sum;
      }
    }
  }
  const std::vector<T> start(expected.size(), before);
  for (int threads : {1, 3}) ASSERT_EQ(Run(layout, lhs, rhs, start, accumulates, threads), expected);
  if (!TiledGemm::Plan(layout.space, kDTypeOf<T>)->makes_pieces()) return;
  std::vector<T> tripled = expected;
  for (T& value : tripled) value *= 3;
  ASSERT_EQ(RunInPieces(layout, lhs, rhs, start, accumulates, false, T(3), 3), tripled);
  if (accumulates || !TiledGemm::Plan(layout.space, kDTypeOf<T>)->makes_whole_sums()) return;
  ASSERT_EQ(RunInPieces(layout, lhs, rhs, start, accumulates, true, T(3), 3), tripled);
}

// Every number of rows and columns beside whole tiles, and terms beside those that are unrolled.
TEST(TiledGemmTest, EdgesOfTilesOnEveryInstructionSet) {
  ForEachInstructionSet([](const char*) {
    std::mt19937 random(1);
    for (int64_t m = 2; m <= 100; ++m) {
      const int64_t n = 2 + m % 29, k = 4 + m % 13;
      Check<float>({m, n, k + 12}, random);
      Check<double>({m, n, k + 12}, random);
    }
    for (int64_t n = 2; n <= 60; ++n) {
      Check<float>({47 + n % 3, n, 20 + n % 5}, random);
      Check<double>({23 + n % 3, n, 20 + n % 5}, random);
    }
  });
}

// Boxes are cut by bytes of packed panels: along the terms first, then rows and columns.
TEST(TiledGemmTest, EdgesOfBoxes) {
  std::mt19937 random(2);
  for (int64_t more : {-1, 0, 1}) {
    for (int64_t k : {384, 768}) {
      Check<double>({60, 50, k + more}, random);
      Check<float>({60, 50, 2 * k + more}, random);
    }
    Check<double>({336 + more, 40, 400}, random);
    Check<double>({40, 344 + more, 400}, random);
    Check<float>({336 + more, 344 + more, 100}, random);
  }
}

// Results that are finished in blocks: many rows beside few columns, and the other way round.
TEST(TiledGemmTest, EdgesOfBlocks) {
  std::mt19937 random(6);
  for (int64_t more : {-1, 0, 1}) {
    Check<float>({4096 + more, 9, 20}, random);
    Check<float>({1024 + more, 70, 5}, random);
    Check<double>({70, 700 + more, 12}, random);
    Check<double>({20000 + more, 3, 17}, random);
  }
}

TEST(TiledGemmTest, Batches) {
  std::mt19937 random(3);
  for (int64_t batch : {2, 3, 17, 40}) {
    Check<float>({30, 20, 25, batch}, random);
    Check<double>({64, 48, 33, batch}, random);
    Check<float>({100, 90, 80, batch}, random);
    Check<double>({150, 70, 500, batch}, random);
  }
}

TEST(TiledGemmTest, AnyStridesOnEveryInstructionSet) {
  ForEachInstructionSet([](const char*) {
    std::mt19937 random(4);
    for (int round = 0; round < 60; ++round) {
      const auto size = [&random](int64_t least, unsigned most) {
        return least + static_cast<int64_t>(random() % most);
      };
      const GemmSizes sizes = {size(2, 120), size(2, 120), size(4, 120), round % 3 == 0 ? size(1, 5) : 1};
      Check<float>(sizes, random);
      Check<double>(sizes, random);
    }
  });
}

// Axes of which some hold whole tiles, so that columns may be packed in their own order.
TEST(TiledGemmTest, ColumnsOfSeveralAxesInAnyOrder) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    Check<float>({48, 480, 40, 2}, random);
    Check<double>({48, 480, 40}, random);
  }
}

// Axes of the result between one another, which end anywhere in tiles and in boxes.
TEST(TiledGemmTest, InterleavedResultsOnEveryInstructionSet) {
  ForEachInstructionSet([](const char*) {
    std::mt19937 random(6);
    for (int round = 0; round < 80; ++round) {
      const auto size = [&random](unsigned most) { return static_cast<int64_t>(2 + random() % most) * 16; };
      const GemmSizes sizes = {.m = size(20) * (round % 2 == 0 ? 1 : 3),
                               .n = static_cast<int64_t>(6 + random() % 100) * (round % 3 + 1),
                               .k = 16 + static_cast<int64_t>(random() % 500),
                               .batch = round % 5 == 0 ? 3 : 1,
                               .interleaves = true};
      Check<float>(sizes, random);
      Check<double>(sizes, random);
    }
  });
}

TEST(TiledGemmTest, ResultsWhoseAxesEndInTiles) {
  if (GetGemmTiles(DType::kF64).rows == 0) GTEST_SKIP() << "no loops for this machine";
  const auto suits = [](int64_t run, int64_t terms) {  // rows of `run` and 3, with 9 columns between them, and 5
    DotSpace space;
    space.roles[kRows] = {{run, {1, 0, 1}}, {3, {run, 0, run * 9}}};
    space.roles[kColumns] = {{9, {0, terms, run}}, {5, {0, terms * 9, run * 27}}};
    space.roles[kSummed] = {{terms, {run * 3, 1, 0}}};
    return TiledGemm::IsFastest(space, DType::kF64);
  };
  EXPECT_TRUE(suits(81, 50));
  EXPECT_FALSE(suits(81, 8));  // too short for the tiles to be copied
  EXPECT_FALSE(suits(7, 50));
}

template <typename T>
void CheckBits(const GemmSizes& sizes) {
  std::mt19937 random(5);
  const Layout layout(sizes, random);
  if (!TiledGemm::IsFastest(layout.space, kDTypeOf<T>)) GTEST_SKIP() << "no loops for this machine";
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> lhs(static_cast<size_t>(layout.elements[kLhs])), rhs(static_cast<size_t>(layout.elements[kRhs]));
  for (T& value : lhs) value = uniform(random);
  for (T& value : rhs) value = uniform(random);
  const std::vector<T> start(static_cast<size_t>(layout.elements[kDotResult]), T(0));
  const std::vector<T> one = Run(layout, lhs, rhs, start, false, 1);
  for (int threads : {2, 3, 4}) {
    const std::vector<T> other = Run(layout, lhs, rhs, start, false, threads);
    EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(T)), 0) << threads << " threads";
  }
}

TEST(TiledGemmTest, SameBitsForAnyThreads) {
  CheckBits<float>({300, 200, 900});
  CheckBits<double>({300, 200, 900});
  CheckBits<double>({90, 80, 100, 20});
  CheckBits<double>({.m = 480, .n = 210, .k = 100, .interleaves = true});
}

// A NaN stays in its row, an infinity times zero is a NaN, and the zeros that fill panels up meet nobody.
TEST(TiledGemmTest, NanAndInfinityStayInTheirRowAndColumn) {
  ForEachInstructionSet([](const char*) {
    constexpr int64_t kM = 53, kN = 45, kK = 30;
    DotSpace space;
    space.roles[kRows] = {{kM, {1, 0, 1}}};
    space.roles[kColumns] = {{kN, {0, kK, kM}}};
    space.roles[kSummed] = {{kK, {kM, 1, 0}}};
    if (!TiledGemm::IsFastest(space, DType::kF64)) return;
    const TiledGemm gemm = *TiledGemm::Plan(space, DType::kF64);
    std::vector<double> lhs(kM * kK, 1), rhs(kK * kN, 0), result(kM * kN, 7);
    lhs[kM - 1 + 3 * kM] = std::numeric_limits<double>::infinity();
    rhs[4 + (kN - 1) * kK] = std::numeric_limits<double>::quiet_NaN();
    std::vector<char> scratch(static_cast<size_t>(gemm.scratch_bytes()) + 64);
    gemm.Run(reinterpret_cast<const char*>(lhs.data()), reinterpret_cast<const char*>(rhs.data()),
             reinterpret_cast<char*>(result.data()),
             scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64), false, PoolOf(1));
    for (int64_t i = 0; i < kM * kN; ++i) {
      const bool is_nan = i % kM == kM - 1 || i / kM == kN - 1;
      EXPECT_EQ(std::isnan(result[static_cast<size_t>(i)]), is_nan) << i;
      EXPECT_TRUE(is_nan || result[static_cast<size_t>(i)] == 0) << i;
    }
  });
}

TEST(TiledGemmTest, SmallAndLongProductsAreLeftToOthers) {
  const auto suits = [](int64_t m, int64_t n, int64_t k) {
    DotSpace space;
    space.roles[kRows] = {{m, {1, 0, 1}}};
    space.roles[kColumns] = {{n, {0, k, m}}};
    space.roles[kSummed] = {{k, {m, 1, 0}}};
    return TiledGemm::IsFastest(space, DType::kF32);
  };
  EXPECT_FALSE(suits(4, 4, 4));
  EXPECT_FALSE(suits(1000, 1, 1000));
  EXPECT_FALSE(suits(10, 10, 100000));
  EXPECT_FALSE(suits(2000, 2000, 4));
  EXPECT_EQ(suits(100, 100, 100), GetGemmTiles(DType::kF32).rows > 0);
}

}  // namespace
}  // namespace tensord::cpu
