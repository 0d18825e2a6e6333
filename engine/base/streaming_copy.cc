#include "engine/base/streaming_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensord {

#if defined(__x86_64__)

void StreamingCopy(absl::string_view from, char* to) {
  constexpr size_t kLine = 64;
  const size_t head = std::min(from.size(), (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from.data(), head);
  const char* at = from.data() + head;
  const char* const end = at + (from.size() - head) / kLine * kLine;
  to += head;
  for (; at < end; at += kLine, to += kLine) {
    __m128i words[4];
    for (size_t k = 0; k < 4; ++k) words[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + k);
    for (size_t k = 0; k < 4; ++k) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + k, words[k]);
  }
  std::memcpy(to, at, from.size() - static_cast<size_t>(at - from.data()));
  _mm_sfence();  // others see it in the order of the program again
}

#else

void StreamingCopy(absl::string_view from, char* to) { std::memcpy(to, from.data(), from.size()); }

#endif

}  // namespace tensord
