#include "engine/ir/names.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/utf8.h"

namespace tensord {
namespace {

constexpr size_t kMaxPrintedBytes = 256;

bool HasControlCharacter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

absl::Status CheckName(absl::string_view name, int64_t max_bytes, bool reference) {
  absl::string_view wrong;
  if (reference && name.empty()) {
    wrong = "is empty";
  } else if (static_cast<int64_t>(name.size()) > max_bytes) {
    return RefuseLimit(Refusal::kNameInvalid, "name_bytes", max_bytes, static_cast<int64_t>(name.size()),
                       "bytes of a name");
  } else if (!IsUtf8(name)) {
    wrong = "is not UTF-8";
  } else if (HasControlCharacter(name)) {
    wrong = "holds a control character";
  } else if (reference && absl::StrContains(name, ':')) {
    wrong = "holds ':', which separates a node from the number of its output";
  } else {
    return absl::OkStatus();
  }
  return Refuse(Refusal::kNameInvalid, absl::StrCat("a name ", wrong, ": \"", PrintableName(name), "\""));
}

std::string SizeDeciderName(absl::string_view node, size_t earlier) {
  return earlier == 0 ? std::string(node) : absl::StrCat(node, ":", earlier + 1);
}

absl::string_view WrittenName(absl::string_view name) { return name.substr(0, name.find(':')); }

std::string PrintableName(absl::string_view name) {
  if (name.size() <= kMaxPrintedBytes && IsUtf8(name) && !HasControlCharacter(name)) return std::string(name);
  std::string escaped = absl::CHexEscape(name.substr(0, kMaxPrintedBytes / 4));
  if (name.size() > kMaxPrintedBytes / 4) escaped += "...";
  return escaped;
}

std::string PrintableMessage(absl::string_view message) {
  return IsUtf8(message) ? std::string(message) : absl::CHexEscape(message);
}

}  // namespace tensord
