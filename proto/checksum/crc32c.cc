#include "proto/checksum/crc32c.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensord {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reflected
constexpr size_t kWord = 8;
// A size that no cache keeps until the bytes are computed with.
constexpr int64_t kLarge = int64_t{512} << 10;

// Table k: the contribution of a byte with k more bytes after it in the word.
using Tables = std::array<std::array<uint32_t, 256>, kWord>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kWord; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint64_t LoadWord(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, kWord);
  return word;
}

// Copied bytes are in the cache when they are read again: the checksum covers the bytes that arrived, not the bytes
// that were sent.
constexpr size_t kStep = size_t{32} << 10;

template <uint32_t (*kExtend)(uint32_t crc, absl::string_view bytes)>
uint32_t CopyInSteps(uint32_t crc, absl::string_view bytes, char* to) {
  for (size_t at = 0; at < bytes.size(); at += kStep) {
    const size_t size = std::min(kStep, bytes.size() - at);
    std::memcpy(to + at, bytes.data() + at, size);
    crc = kExtend(crc, {to + at, size});
  }
  return crc;
}

#if defined(__x86_64__)
// The instruction takes three cycles and one may begin in each, so three lanes are computed side by side.
constexpr size_t kLane = 1024;
// Three lanes at a time are no stream that the processor would recognise and fetch by itself: without help, bytes that
// are in no cache take four times as long.
constexpr size_t kLine = 64;
constexpr size_t kAhead = 6 * kLane;

// The change of each of a state's four bytes by the zeros of a lane behind it.
using LaneTables = std::array<std::array<uint32_t, 256>, 4>;

LaneTables MakeLaneTables() {
  LaneTables tables;
  for (size_t k = 0; k < tables.size(); ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t state = byte << (8 * k);
      for (size_t i = 0; i < kLane; ++i) state = (state >> 8) ^ kTables[0][state & 0xFF];
      tables[k][byte] = state;
    }
  }
  return tables;
}

uint32_t BehindLane(const LaneTables& tables, uint64_t state) {
  uint32_t shifted = 0;
  for (size_t k = 0; k < tables.size(); ++k) shifted ^= tables[k][(state >> (8 * k)) & 0xFF];
  return shifted;
}

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, absl::string_view bytes) {
  static const LaneTables lane_tables = MakeLaneTables();
  uint64_t state = crc ^ 0xFFFFFFFF;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kLane; left -= 3 * kLane, at += 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (const char* line = at; line < at + kLane; line += kLine) {
      // Later bytes are fetched in the order in which they lie; past the end this does nothing.
      const uintptr_t later = reinterpret_cast<uintptr_t>(at) + kAhead + 3 * static_cast<uintptr_t>(line - at);
      for (size_t k = 0; k < 3; ++k) _mm_prefetch(reinterpret_cast<const char*>(later + k * kLine), _MM_HINT_T0);
      for (const char* word = line; word < line + kLine; word += kWord) {
        state = _mm_crc32_u64(state, LoadWord(word));
        second = _mm_crc32_u64(second, LoadWord(word + kLane));
        third = _mm_crc32_u64(third, LoadWord(word + 2 * kLane));
      }
    }
    state = BehindLane(lane_tables, BehindLane(lane_tables, state) ^ second) ^ third;
  }
  for (; left >= kWord; left -= kWord, at += kWord) state = _mm_crc32_u64(state, LoadWord(at));
  uint32_t rest = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++at) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*at));
  return rest ^ 0xFFFFFFFF;
}

// Carry-less products fold bytes onto those some way behind them, which leaves the remainder of the polynomial as it
// is: four registers of 64 bytes at a time, and in the end 16 bytes that stand for all.
constexpr size_t kFolded = 256;
constexpr size_t kFoldedAhead = size_t{8} << 10;  // the processor's own fetching stays behind

// Returns the bits of x^exponent modulo the polynomial, reflected and shifted as the product of reflected factors wants
// them.
constexpr int64_t PowerOfX(int exponent) {
  uint32_t power = 0x80000000;  // x^0
  for (int i = 0; i < exponent; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  return static_cast<int64_t>(power) << 1;
}

struct Fold {
  int64_t first, second;  // of the halves of 128 bits
};
constexpr Fold FoldOver(int bits) { return {PowerOfX(bits + 32), PowerOfX(bits - 32)}; }

constexpr Fold kOverBlock = FoldOver(8 * kFolded), kOverRegister = FoldOver(512), kOverLane = FoldOver(128);

#define TENSORD_FOLDING __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))

TENSORD_FOLDING inline __m512i Load(const char* bytes) { return _mm512_loadu_si512(bytes); }

TENSORD_FOLDING inline __m512i Folded(__m512i value, Fold fold, __m512i next) {
  const __m512i factors = _mm512_set4_epi64(fold.second, fold.first, fold.second, fold.first);
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, factors, 0x00),
                                   _mm512_clmulepi64_epi128(value, factors, 0x11), next, 0x96);  // of all three: xor
}

TENSORD_FOLDING inline __m128i Folded(__m128i value, Fold fold, __m128i next) {
  const __m128i factors = _mm_set_epi64x(fold.second, fold.first);
  return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(value, factors, 0x00), _mm_clmulepi64_si128(value, factors, 0x11),
                                next, 0x96);
}

TENSORD_FOLDING inline void Stream(char* to, __m512i a, __m512i b, __m512i c, __m512i d) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), a);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64), b);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 128), c);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 192), d);
}

TENSORD_FOLDING inline uint32_t Remainder(__m512i a, __m512i b, __m512i c, __m512i d) {
  d = Folded(Folded(Folded(a, kOverRegister, b), kOverRegister, c), kOverRegister, d);
  __m128i lanes[4];
  _mm512_storeu_si512(lanes, d);
  const __m128i all = Folded(Folded(Folded(lanes[0], kOverLane, lanes[1]), kOverLane, lanes[2]), kOverLane, lanes[3]);
  const uint64_t first = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(all)));
  return static_cast<uint32_t>(_mm_crc32_u64(first, static_cast<uint64_t>(_mm_extract_epi64(all, 1))));
}

// Folds whole blocks, at least one. Copies them too; `to` is aligned to kLine.
template <bool kCopies>
TENSORD_FOLDING uint32_t FoldBlocks(uint32_t crc, absl::string_view blocks, char* to) {
  const char* at = blocks.data();
  const char* const end = at + blocks.size();
  const __m512i state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc ^ 0xFFFFFFFF)));
  __m512i a = Load(at), b = Load(at + 64), c = Load(at + 128), d = Load(at + 192);
  if constexpr (kCopies) Stream(to, a, b, c, d);
  a = _mm512_xor_si512(a, state);
  for (at += kFolded; at < end; at += kFolded) {
    const __m512i e = Load(at), f = Load(at + 64), g = Load(at + 128), h = Load(at + 192);
    if constexpr (kCopies) {
      Stream(to += kFolded, e, f, g, h);
    } else {
      const uintptr_t later = reinterpret_cast<uintptr_t>(at) + kFoldedAhead;
      for (size_t k = 0; k < kFolded; k += kLine) _mm_prefetch(reinterpret_cast<const char*>(later + k), _MM_HINT_T0);
    }
    a = Folded(a, kOverBlock, e);
    b = Folded(b, kOverBlock, f);
    c = Folded(c, kOverBlock, g);
    d = Folded(d, kOverBlock, h);
  }
  if constexpr (kCopies) _mm_sfence();
  return Remainder(a, b, c, d) ^ 0xFFFFFFFF;
}

TENSORD_FOLDING uint32_t ExtendByFolding(uint32_t crc, absl::string_view bytes) {
  if (bytes.size() < 4 * kFolded) return ExtendByInstruction(crc, bytes);
  const size_t whole = bytes.size() / kFolded * kFolded;
  return ExtendByInstruction(FoldBlocks<false>(crc, bytes.substr(0, whole), nullptr), bytes.substr(whole));
}

TENSORD_FOLDING uint32_t CopyByFolding(uint32_t crc, absl::string_view bytes, char* to) {
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;  // up to where lines begin
  if (bytes.size() < head + 4 * kFolded) return CopyInSteps<&ExtendByInstruction>(crc, bytes, to);
  const size_t whole = (bytes.size() - head) / kFolded * kFolded;
  crc = CopyInSteps<&ExtendByInstruction>(crc, bytes.substr(0, head), to);
  crc = FoldBlocks<true>(crc, bytes.substr(head, whole), to + head);
  return CopyInSteps<&ExtendByInstruction>(crc, bytes.substr(head + whole), to + head + whole);
}

std::vector<Crc32cWay> WaysOfProcessor() {
  std::vector<Crc32cWay> ways;
  if (__builtin_cpu_supports("sse4.2")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul")) {
      ways.push_back({&ExtendByFolding, &CopyByFolding});
    }
    ways.push_back({&ExtendByInstruction, &CopyInSteps<&ExtendByInstruction>});
  }
  return ways;
}
#else
std::vector<Crc32cWay> WaysOfProcessor() { return {}; }
#endif

// On any processor.
uint32_t ExtendByTables(uint32_t crc, absl::string_view bytes) {
  uint32_t state = crc ^ 0xFFFFFFFF;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kWord; left -= kWord, at += kWord) {
    const uint64_t word = LoadWord(at) ^ state;
    state = 0;
    for (size_t k = 0; k < kWord; ++k) state ^= kTables[kWord - 1 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; left > 0; --left, ++at) state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint8_t>(*at)) & 0xFF];
  return state ^ 0xFFFFFFFF;
}

const Crc32cWay& Fastest() {
  static const Crc32cWay fastest = Crc32cWays().front();
  return fastest;
}

}  // namespace

std::vector<Crc32cWay> Crc32cWays() {
  std::vector<Crc32cWay> ways = WaysOfProcessor();
  ways.push_back({&ExtendByTables, &CopyInSteps<&ExtendByTables>});
  return ways;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) { return Fastest().extend(crc, bytes); }

uint32_t CopyWithCrc32c(uint32_t crc, absl::string_view bytes, char* to, int64_t whole) {
  if (whole >= kLarge) return Fastest().copy(crc, bytes, to);
  std::memcpy(to, bytes.data(), bytes.size());
  return ExtendCrc32c(crc, {to, bytes.size()});
}

}  // namespace tensord
