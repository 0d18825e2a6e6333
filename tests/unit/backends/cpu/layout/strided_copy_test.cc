#include "backends/cpu/layout/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

struct CopyCase {
  std::vector<CopyAxis> axes;
  int64_t element_bytes = 1;
};

std::string Describe(const CopyCase& c) {
  std::string text = absl::StrCat(c.element_bytes, " bytes:");
  for (const CopyAxis& a : c.axes) absl::StrAppend(&text, " ", a.size, "(", a.src_stride, ">", a.dst_stride, ")");
  return text;
}

// Lowest and highest element offset on one side.
std::pair<int64_t, int64_t> Extent(const CopyCase& c, int64_t CopyAxis::*stride) {
  int64_t low = 0, high = 0;
  for (const CopyAxis& a : c.axes) {
    const int64_t span = (a.size - 1) * (a.*stride);
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

bool IsEmpty(const CopyCase& c) {
  return std::any_of(c.axes.begin(), c.axes.end(), [](const CopyAxis& a) { return a.size == 0; });
}

void NaiveCopy(const CopyCase& c, const char* src, char* dst) {
  if (IsEmpty(c)) return;
  std::vector<int64_t> index(c.axes.size(), 0);
  while (true) {
    int64_t s = 0, d = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      s += index[k] * c.axes[k].src_stride;
      d += index[k] * c.axes[k].dst_stride;
    }
    std::memcpy(dst + d * c.element_bytes, src + s * c.element_bytes, static_cast<size_t>(c.element_bytes));
    size_t k = 0;
    while (k < index.size() && ++index[k] == c.axes[k].size) index[k++] = 0;
    if (k == index.size()) return;
  }
}

// Copies with the plan (in one go, and task by task from the last to the first) and compares every byte of the
// destination, gaps included, with the naive loop's.
void Check(const CopyCase& c) {
  SCOPED_TRACE(Describe(c));
  const auto [src_low, src_high] = IsEmpty(c) ? std::pair<int64_t, int64_t>{0, 0} : Extent(c, &CopyAxis::src_stride);
  const auto [dst_low, dst_high] = IsEmpty(c) ? std::pair<int64_t, int64_t>{0, 0} : Extent(c, &CopyAxis::dst_stride);
  ASSERT_EQ(dst_low, 0);
  std::vector<char> src(static_cast<size_t>((src_high - src_low + 1) * c.element_bytes));
  std::mt19937 random(7);
  for (char& byte : src) byte = static_cast<char>(random());
  const char* src_base = src.data() - src_low * c.element_bytes;

  const size_t dst_bytes = static_cast<size_t>((dst_high + 1) * c.element_bytes);
  std::vector<char> expected(dst_bytes, 'x');
  NaiveCopy(c, src_base, expected.data());

  const StridedCopy copy(c.axes, c.element_bytes);
  std::vector<char> actual(dst_bytes, 'x');
  copy.Run(src_base, actual.data());
  EXPECT_TRUE(actual == expected);

  std::fill(actual.begin(), actual.end(), 'x');
  for (int64_t task = copy.num_tasks() - 1; task >= 0; --task) copy.RunTask(task, src_base, actual.data());
  EXPECT_TRUE(actual == expected) << "by tasks";
}

CopyCase Permuted(std::vector<int64_t> shape, std::vector<int> permutation, int64_t element_bytes) {
  std::vector<int64_t> src_strides(shape.size());
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    src_strides[i] = stride;
    stride *= shape[i];
  }
  CopyCase c;
  c.element_bytes = element_bytes;
  stride = 1;
  for (int axis : permutation) {
    const size_t a = static_cast<size_t>(axis);
    c.axes.push_back({shape[a], src_strides[a], stride});
    stride *= shape[a];
  }
  return c;
}

TEST(StridedCopyTest, ScalarIsOneElement) { Check({{}, 8}); }

TEST(StridedCopyTest, EmptyAxisCopiesNothing) {
  const StridedCopy copy({{3, 1, 1}, {0, 3, 3}, {5, 0, 0}}, 4);
  EXPECT_EQ(copy.num_tasks(), 0);
  EXPECT_EQ(copy.dst_bytes(), 0);
  copy.Run(nullptr, nullptr);
}

TEST(StridedCopyTest, DefaultCopiesNothing) {
  const StridedCopy copy;
  EXPECT_EQ(copy.num_tasks(), 0);
  copy.Run(nullptr, nullptr);
}

TEST(StridedCopyTest, TransposesOfEveryWidthAndTail) {
  for (int64_t bytes : {1, 2, 4, 8, 16}) {
    for (int64_t m : {1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 130, 200}) {
      for (int64_t n : {1, 2, 4, 16, 31, 64, 129}) Check(Permuted({m, n}, {1, 0}, bytes));
    }
  }
}

TEST(StridedCopyTest, RandomPermutations) {
  std::mt19937 random(1);
  for (int round = 0; round < 600; ++round) {
    const size_t rank = random() % 9;
    std::vector<int64_t> shape(rank);
    for (int64_t& size : shape) size = 1 + static_cast<int64_t>(random() % (rank > 4 ? 4 : 20));
    if (rank > 0 && random() % 40 == 0) shape[random() % rank] = 0;
    std::vector<int> permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), random);
    Check(Permuted(shape, permutation, int64_t{1} << random() % 5));
  }
}

TEST(StridedCopyTest, RandomStrides) {
  std::mt19937 random(2);
  for (int round = 0; round < 1500; ++round) {
    const size_t rank = random() % 6;
    CopyCase c;
    c.element_bytes = int64_t{1} << random() % 5;
    int64_t dst_stride = 1 + random() % 2;
    int64_t src_stride = 1;
    for (size_t k = 0; k < rank; ++k) {
      CopyAxis axis;
      axis.size = 1 + static_cast<int64_t>(random() % 12);
      axis.dst_stride = dst_stride;
      dst_stride = dst_stride * axis.size + static_cast<int64_t>(random() % 2 * (random() % 5));
      axis.src_stride = src_stride;
      src_stride = src_stride * axis.size + static_cast<int64_t>(random() % 2 * (random() % 5));
      switch (random() % 5) {
        case 0:
          axis.src_stride = 0;
          break;
        case 1:
          axis.src_stride = -axis.src_stride;
          break;
        case 2:
          axis.src_stride *= 2;
          src_stride *= 2;
          break;
      }
      c.axes.push_back(axis);
    }
    std::shuffle(c.axes.begin(), c.axes.end(), random);
    // A permuted source: the strides go to other axes of the same size.
    for (size_t k = 0; k + 1 < rank; ++k) {
      if (c.axes[k].size == c.axes[k + 1].size && random() % 2 == 0) {
        std::swap(c.axes[k].src_stride, c.axes[k + 1].src_stride);
      }
    }
    Check(c);
  }
}

TEST(StridedCopyTest, LongAxesAreCut) {
  Check({{{300001, 1, 1}}, 4});
  Check({{{300001, 0, 1}}, 2});
  Check({{{100003, -1, 1}}, 8});
  Check({{{100003, 3, 2}}, 1});
  Check({{{7, 1, 1}, {40001, 9, 8}}, 4});
  Check({{{5, 0, 1}, {40001, 1, 5}}, 4});
  Check(Permuted({3, 50000}, {1, 0}, 4));
  Check(Permuted({50000, 3}, {1, 0}, 8));
  Check(Permuted({517, 613}, {1, 0}, 4));
}

TEST(StridedCopyTest, HighRank) {
  std::vector<int> reversed(16);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Check(Permuted(std::vector<int64_t>(16, 2), reversed, 8));
  Check(Permuted({3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 4));
  Check(Permuted(std::vector<int64_t>(16, 2), {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15}, 4));
}

// Axes that take turns in the orders of both sides.
TEST(StridedCopyTest, InterleavedAxes) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const size_t rank = 9 + random() % 5;
    std::vector<int64_t> shape(rank);
    for (int64_t& size : shape) size = random() % 4 == 0 ? 1 + static_cast<int64_t>(random() % 4) : 2;
    std::vector<int> permutation;
    const size_t step = 2 + random() % 3;
    for (size_t first = 0; first < step; ++first) {
      for (size_t axis = first; axis < rank; axis += step) permutation.push_back(static_cast<int>(axis));
    }
    if (random() % 2 == 0) std::swap(permutation[random() % rank], permutation[random() % rank]);
    Check(Permuted(shape, permutation, int64_t{1} << random() % 5));
  }
}

// Big enough that stores go past the cache on machines with up to 64 MiB of last-level cache.
TEST(StridedCopyTest, BeyondTheCache) {
  Check(Permuted({2304, 2048}, {1, 0}, 8));
  Check({{{8 << 20, 1, 1}}, 4});
  Check({{{4099, 0, 1}, {2048, 1, 4099}}, 4});
  Check(Permuted({512, 128, 160}, {0, 2, 1}, 4));
  Check(Permuted({2304, 1024}, {1, 0}, 16));
  Check(Permuted(std::vector<int64_t>(22, 2),
                 {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21}, 8));
}

TEST(StridedCopyTest, StreamingLoopsEqualTheOthers) {
  const StridedCopyLoops& loops = GetStridedCopyLoops();
  alignas(64) static char src[1 << 16];
  std::mt19937 random(3);
  for (char& byte : src) byte = static_cast<char>(random());
  for (int64_t misaligned : {0, 16, 48}) {
    for (int64_t count : {1, 3, 31, 64, 65, 200}) {
      for (int w = 0; w < 5; ++w) {
        const int64_t width = int64_t{1} << w;
        alignas(64) static char plain[1 << 16], stream[1 << 16];
        std::memset(plain, 0, sizeof(plain));
        std::memset(stream, 0, sizeof(stream));
        const RowBlock repeat{count, 0, width, 3, 2 * width, (count + 1) * width};
        loops.widths[w].repeated(src, plain + misaligned, repeat);
        loops.widths[w].repeated_stream(src, stream + misaligned, repeat);
        EXPECT_EQ(std::memcmp(plain, stream, sizeof(plain)), 0) << width << " " << count;
        const RowBlock run{count * width, width, width, 3, 5 * width, (count + 1) * width};
        loops.contiguous(src + width, plain + misaligned, run);
        loops.contiguous_stream(src + width, stream + misaligned, run);
        EXPECT_EQ(std::memcmp(plain, stream, sizeof(plain)), 0) << width << " " << count;
      }
    }
  }
}

TEST(StridedCopyTest, PoolGivesTheSame) {
  const CopyCase c = Permuted({61, 300, 70}, {2, 0, 1}, 4);
  std::vector<float> src(61 * 300 * 70), serial(src.size()), parallel(src.size());
  std::iota(src.begin(), src.end(), 0.0f);
  const StridedCopy copy(c.axes, 4);
  ASSERT_GT(copy.num_tasks(), 4);
  copy.Run(src.data(), serial.data());
  ThreadPool pool(4);
  pool.ParallelFor(copy.num_tasks(), [&](int64_t task) { copy.RunTask(task, src.data(), parallel.data()); });
  EXPECT_EQ(serial, parallel);
}

}  // namespace
}  // namespace tensord::cpu
