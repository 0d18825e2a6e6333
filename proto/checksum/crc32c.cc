#include "proto/checksum/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tensord {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reflected
constexpr size_t kWord = 8;

// Table k: what a byte contributes when k more bytes follow it in the word.
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

using Extend = uint32_t (*)(uint32_t crc, absl::string_view bytes);

#if defined(__x86_64__)
// The instruction takes three cycles and one may begin in each, so three lanes are computed side by side.
constexpr size_t kLane = 1024;
// Three lanes at a time are no stream that the processor would recognise and fetch by itself: without help, bytes that
// are in no cache take four times as long.
constexpr size_t kLine = 64;
constexpr size_t kAhead = 6 * kLane;

// What each of a state's four bytes becomes by the zeros of a lane behind it.
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
      // What comes later is fetched in the order in which it lies; past the end this does nothing.
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

Extend Fastest() { return __builtin_cpu_supports("sse4.2") ? &ExtendByInstruction : &ExtendCrc32cByTables; }
#else
Extend Fastest() { return &ExtendCrc32cByTables; }
#endif

}  // namespace

uint32_t ExtendCrc32cByTables(uint32_t crc, absl::string_view bytes) {
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

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  static const Extend extend = Fastest();
  return extend(crc, bytes);
}

}  // namespace tensord
