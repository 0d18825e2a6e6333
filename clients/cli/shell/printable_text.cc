#include "clients/cli/shell/printable_text.h"

#include <cstddef>

#include "absl/strings/str_format.h"

namespace tensord::cli {
namespace {

bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

std::string Printable(absl::string_view text, absl::string_view kept) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      absl::StrAppendFormat(&printable, "\\x%02x\\x%02x", byte, next);
      ++i;
    } else if (IsControl(byte) && kept.find(text[i]) == absl::string_view::npos) {
      absl::StrAppendFormat(&printable, "\\x%02x", byte);
    } else {
      printable += text[i];
    }
  }
  return printable;
}

}  // namespace

std::string PrintableLine(absl::string_view text) { return Printable(text, ""); }

std::string PrintableText(absl::string_view text) { return Printable(text, "\n\t"); }

}  // namespace tensord::cli
