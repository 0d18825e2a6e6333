#include "clients/cli/shell/printable_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tensord::cli {
namespace {

// A character of UTF-8, or a byte that belongs to none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
};

Character FirstOf(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (bytes == 1 || bytes > text.size()) return {.code = lead};
  uint32_t code = lead & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {.code = lead};
    code = code << 6 | (byte & 0x3f);
  }
  return {.code = code, .bytes = bytes};
}

// Tells whether a terminal would do more than show it.
bool IsObeyed(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  return is_control || turns || ends_line;
}

std::string Printable(absl::string_view text, absl::string_view kept) {
  std::string printable;
  while (!text.empty()) {
    const Character first = FirstOf(text);
    const absl::string_view bytes = text.substr(0, first.bytes);
    text.remove_prefix(first.bytes);
    if (!IsObeyed(first.code) || kept.find(bytes) != absl::string_view::npos) {
      absl::StrAppend(&printable, bytes);
    } else {
      for (const char byte : bytes) absl::StrAppendFormat(&printable, "\\x%02x", static_cast<unsigned char>(byte));
    }
  }
  return printable;
}

}  // namespace

std::string PrintableLine(absl::string_view text) { return Printable(text, ""); }

std::string PrintableText(absl::string_view text) { return Printable(text, "\n\t"); }

}  // namespace tensord::cli
