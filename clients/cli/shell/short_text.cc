#include "clients/cli/shell/short_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tensord::cli {

std::string ShortTime(absl::Duration duration) {
  double value = absl::ToDoubleNanoseconds(duration);
  if (value == 0) return "0";
  const char* unit = "ns";
  for (const char* larger : {"us", "ms", "s"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  return absl::StrFormat(value < 999.5 ? "%.3g%s" : "%.0f%s", value, unit);
}

std::string ShortCount(double count) {
  const char* unit = "";
  for (const char* larger : {"k", "M", "G"}) {
    if (count < 999.5) break;
    count /= 1000;
    unit = larger;
  }
  return absl::StrFormat(count < 999.5 ? "%.3g%s" : "%.0f%s", count, unit);
}

std::string ShortBytes(double bytes) {
  const char* unit = "";
  for (const char* larger : {"Ki", "Mi", "Gi", "Ti"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return absl::StrFormat(bytes < 999.5 ? "%.3g %sB" : "%.0f %sB", bytes, unit);
}

std::string ListText(absl::Span<const std::string> names) {
  constexpr size_t kMostNames = 10;
  const size_t shown = std::min(names.size(), kMostNames);
  const std::string rest = names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "";
  return absl::StrCat(absl::StrJoin(names.first(shown), ", "), rest);
}

}  // namespace tensord::cli
