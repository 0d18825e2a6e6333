#include "proto/command_line/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tensord::wire {
namespace {

// Longer words are no misspelt names, and comparing takes the product of both lengths.
constexpr size_t kMostLetters = 100;
constexpr size_t kLeastOfPrefix = 2;

size_t Distance(absl::string_view a, absl::string_view b) {
  // Rows of the table: before the last one, the last one, this one.
  std::vector<size_t> former(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_exchanged) row[j] = std::min(row[j], former[j - 2] + 1);
    }
    std::swap(former, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// Returns the only name that begins with the word; empty if there is none or another one.
std::string Completed(absl::string_view word, absl::Span<const std::string> names) {
  std::string found;
  if (word.size() < kLeastOfPrefix) return found;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, word)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

}  // namespace

std::string NearestName(absl::string_view word, absl::Span<const std::string> names) {
  if (word.size() > kMostLetters) return "";
  size_t bound = std::max<size_t>(1, word.size() / 3);
  std::string nearest;
  for (const std::string& name : names) {
    if (name.size() > kMostLetters) continue;
    const size_t distance = Distance(word, name);
    // Words without a common letter are not alike.
    if (distance > bound || distance >= std::max(word.size(), name.size())) continue;
    if (!nearest.empty() && distance == bound) continue;
    nearest = name;
    bound = distance;
  }
  return nearest.empty() ? Completed(word, names) : nearest;
}

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> names, absl::string_view prefix) {
  const std::string nearest = NearestName(word, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", prefix, nearest, "?");
}

}  // namespace tensord::wire
