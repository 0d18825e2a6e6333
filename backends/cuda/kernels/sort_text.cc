#include "backends/cuda/kernels/sort_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kBlockKeys = 1024;  // that a block sorts in shared memory
constexpr int64_t kSortThreads = 256;

// Sorts a block's keys: bitonic, every step a barrier.
constexpr char kSortBlock[] = R"(TENSORD_FN void SortBlock(u64* keys) {
  for (u32 size = 2; size <= 1024; size *= 2) {
    for (u32 step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (u32 t = threadIdx.x; t < 512; t += 256) {
        const u32 a = t / step * 2 * step + t % step, b = a + step;
        const u64 x = keys[a], y = keys[b];
        if ((x > y) == ((a & size) == 0)) {
          keys[a] = y;
          keys[b] = x;
        }
      }
    }
  }
  __syncthreads();
}
)";

// Merges runs of `run` keys by two: a key's place is its own in its run, and the number of keys of the other run that
// come before it. Of equal keys those of the left run come first.
constexpr char kMergeRuns[] = R"(TENSORD_FN void MergeRuns(const u64* from, u64* into, u64 count, u64 run) {
  for (u64 i = blockIdx.x * 256ull + threadIdx.x; i < count; i += gridDim.x * 256ull) {
    const u64 first = i / (2 * run) * (2 * run), middle = first + run < count ? first + run : count;
    const bool is_left = i < middle;
    const u64 key = from[i], other = is_left ? middle : first;
    u64 low = 0, high = is_left ? (middle + run < count ? middle + run : count) - middle : middle - first;
    while (low < high) {
      const u64 at = (low + high) / 2, x = from[other + at];
      if (is_left ? x < key : x <= key) {
        low = at + 1;
      } else {
        high = at;
      }
    }
    into[is_left ? i + low : first + (i - middle) + low] = key;
  }
}
)";

}  // namespace

int64_t SortText::scratch_bytes() const { return count_ * (num_merges() > 0 ? 16 : 8); }

int64_t SortText::num_merges() const {
  int64_t merges = 0;
  for (int64_t run = kBlockKeys; run < count_; run *= 2) ++merges;
  return merges;
}

std::string SortText::Sorted() const {
  return num_merges() % 2 == 0 ? "scratch" : absl::StrCat("(scratch + ", count_, "ll)");
}

std::vector<CudaLaunch> SortText::Write(CudaLines* lines, const std::string& parameters,
                                        const std::vector<int32_t>& arguments,
                                        const std::function<void()>& write_key) const {
  std::vector<CudaLaunch> launches;
  launches.push_back({.entry = "sort_blocks",
                      .blocks = CeilDiv(count_, kBlockKeys),
                      .threads_per_block = kSortThreads,
                      .arguments = arguments});
  lines->Raw(kSortBlock);
  lines->Open("extern \"C\" __global__ void __launch_bounds__(", kSortThreads, ") sort_blocks(", parameters, ")");
  lines->Line("__shared__ u64 keys[", kBlockKeys, "];");
  lines->Line("const u64 first = blockIdx.x * ", kBlockKeys, "ull;");
  lines->Open("for (u32 t = threadIdx.x; t < ", kBlockKeys, "u; t += ", kSortThreads, "u)");
  lines->Line("const u64 i = first + t;");
  lines->Open("if (i >= ", count_, "ull)");
  lines->Line("keys[t] = ~0ull;");
  lines->Close();
  lines->Open("else");
  write_key();
  lines->Line("keys[t] = key;");
  lines->Close();
  lines->Close();
  lines->Line("SortBlock(keys);");
  lines->Open("for (u32 t = threadIdx.x; t < ", kBlockKeys, "u; t += ", kSortThreads, "u)");
  lines->Line("if (first + t < ", count_, "ull) scratch[first + t] = keys[t];");
  lines->Close();
  lines->Close();
  if (num_merges() > 0) lines->Raw(kMergeRuns);
  int64_t run = kBlockKeys;
  for (int64_t merge = 0; merge < num_merges(); ++merge, run *= 2) {
    const std::string entry = absl::StrCat("merge", merge);
    const std::string halves[] = {"scratch", absl::StrCat("scratch + ", count_, "ll")};
    lines->Open("extern \"C\" __global__ void __launch_bounds__(", kSortThreads, ") ", entry, "(", parameters, ")");
    lines->Line("MergeRuns(", halves[merge % 2], ", ", halves[1 - merge % 2], ", ", count_, "ull, ", run, "ull);");
    lines->Close();
    launches.push_back({.entry = entry,
                        .blocks = std::min<int64_t>(CeilDiv(count_, kSortThreads), 1 << 16),
                        .threads_per_block = kSortThreads,
                        .arguments = arguments});
  }
  return launches;
}

}  // namespace tensord::cuda
