#include "engine/base/utf8.h"

namespace tensord {

bool IsUtf8(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                          : (lead & 0xf0) == 0xe0        ? 3
                          : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                         : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    const unsigned char second = byte(i + 1);
    if (lead == 0xe0 && second < 0xa0) return false;   // overlong
    if (lead == 0xed && second >= 0xa0) return false;  // surrogate
    if (lead == 0xf0 && second < 0x90) return false;   // overlong
    if (lead == 0xf4 && second >= 0x90) return false;  // past the last code point
    i += length;
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  std::string copy(text);
  if (IsUtf8(text)) return copy;
  for (char& c : copy) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return copy;
}

std::string Utf8Prefix(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return ToUtf8(text);
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) --max_bytes;
  return ToUtf8(text.substr(0, max_bytes));
}

}  // namespace tensord
