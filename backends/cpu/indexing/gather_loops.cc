#include "backends/cpu/indexing/gather_loops.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/machine/streamed_stores.h"

namespace tensord::cpu {
namespace {

// Unaligned and alias-free access to an element by its width.
template <int kBytes>
struct Width;
template <>
struct Width<1> {
  typedef uint8_t Word __attribute__((may_alias));
};
template <>
struct Width<2> {
  typedef uint16_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<4> {
  typedef uint32_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<8> {
  typedef uint64_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<16> {
  typedef uint64_t Word __attribute__((vector_size(16), may_alias, aligned(1)));
};

template <int kBytes>
void PickRun(const void* src, void* dst, const int64_t* from, int64_t count) {
  using Word = typename Width<kBytes>::Word;
  const Word* const in = static_cast<const Word*>(src);
  Word* const out = static_cast<Word*>(dst);
  for (int64_t i = 0; i < count; ++i) out[i] = in[from[i]];
}

template <int kBytes>
void PickEach(const void* src, void* dst, const int64_t* from, const int64_t* into, int64_t count) {
  using Word = typename Width<kBytes>::Word;
  const Word* const in = static_cast<const Word*>(src);
  Word* const out = static_cast<Word*>(dst);
  for (int64_t i = 0; i < count; ++i) out[into[i]] = in[from[i]];
}

template <int kBytes>
constexpr GatherLoops kLoopsOf = {&PickRun<kBytes>, &PickEach<kBytes>};
constexpr GatherLoops kLoops[] = {kLoopsOf<1>, kLoopsOf<2>, kLoopsOf<4>, kLoopsOf<8>, kLoopsOf<16>};

// Rows of a table larger than the cache lie anywhere; asked for this many rows ahead they arrive in time.
constexpr int64_t kRunsAhead = 8;

// kBytes: of a run, 0 for any number. kDense: indices and results follow one another.
template <typename Index, int64_t kBytes, bool kDense = false, bool kStream = false>
void Copy(const RunLookup& lookup) {
  const Index* const indices = static_cast<const Index*>(lookup.indices);
  const int64_t bytes = kBytes != 0 ? kBytes : lookup.run_bytes;
  const int64_t prefetched = std::min(bytes, kPrefetchedBytes);
  if constexpr (kBytes != 0 && !kDense) {
    if (lookup.index_step == 1 && lookup.dst_step == kBytes) return Copy<Index, kBytes, true>(lookup);
  }
  if constexpr (kBytes == 0 && !kStream) {
    if (lookup.stream) {
      Copy<Index, 0, false, true>(lookup);
      return FlushStreamed();
    }
  }
  const int64_t index_step = kDense ? 1 : lookup.index_step, dst_step = kDense ? kBytes : lookup.dst_step;
  const int64_t limit = lookup.limit, src_step = lookup.src_step;
  const char* const src = lookup.src;
  char* const dst = lookup.dst;
  const auto run = [&](int64_t i) { return src + std::clamp<int64_t>(indices[i * index_step], 0, limit) * src_step; };
  const auto copy = [&](int64_t i) {
    if constexpr (kStream) {
      StreamCopy(run(i), dst + i * dst_step, bytes);
    } else {
      std::memcpy(dst + i * dst_step, run(i), static_cast<size_t>(bytes));
    }
  };
  const int64_t with_next = std::max<int64_t>(0, lookup.count - kRunsAhead);
  for (int64_t i = 0; i < with_next; ++i) {
    if constexpr (kBytes == 0 || kBytes >= 16) {
      const char* const next = run(i + kRunsAhead);
      for (int64_t line = 0; line < prefetched; line += kLineBytes) __builtin_prefetch(next + line);
    }
    copy(i);
  }
  for (int64_t i = with_next; i < lookup.count; ++i) copy(i);
}

template <typename Index>
void CopyAnyRuns(const RunLookup& lookup) {
  switch (lookup.run_bytes) {
    case 1:
      return Copy<Index, 1>(lookup);
    case 2:
      return Copy<Index, 2>(lookup);
    case 4:
      return Copy<Index, 4>(lookup);
    case 8:
      return Copy<Index, 8>(lookup);
    case 16:
      return Copy<Index, 16>(lookup);
    case 32:
      return Copy<Index, 32>(lookup);
    case 64:
      return Copy<Index, 64>(lookup);
    default:
      return Copy<Index, 0>(lookup);
  }
}

}  // namespace

const GatherLoops& GetGatherLoops(int64_t element_bytes) {
  return kLoops[std::countr_zero(static_cast<uint64_t>(element_bytes))];
}

void CopyRuns(const RunLookup& lookup, DType index_dtype) {
  index_dtype == DType::kI32 ? CopyAnyRuns<int32_t>(lookup) : CopyAnyRuns<int64_t>(lookup);
}

}  // namespace tensord::cpu
