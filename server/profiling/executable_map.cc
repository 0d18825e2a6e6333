#include "server/profiling/executable_map.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensord::server {
namespace {

bool ReadHex(absl::string_view text, uintptr_t* value) {
  uint64_t number = 0;
  if (!absl::SimpleHexAtoi(text, &number)) return false;
  *value = static_cast<uintptr_t>(number);
  return true;
}

}  // namespace

std::vector<CodeRange> ParseCodeRanges(absl::string_view maps) {
  std::vector<CodeRange> ranges;
  for (absl::string_view line : absl::StrSplit(maps, '\n', absl::SkipEmpty())) {
    // "7f00-7f80 r-xp 00001000 08:01 123   /usr/lib/libc.so.6"; the path is all that is left, with its spaces.
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    if (fields.size() < 5 || fields[1].size() < 3 || fields[1][2] != 'x') continue;
    const std::vector<absl::string_view> ends = absl::StrSplit(fields[0], '-');
    CodeRange range;
    if (ends.size() != 2 || !ReadHex(ends[0], &range.begin) || !ReadHex(ends[1], &range.end) ||
        !ReadHex(fields[2], &range.file_offset)) {
      continue;
    }
    if (fields.size() == 6) range.file = std::string(absl::StripLeadingAsciiWhitespace(fields[5]));
    ranges.push_back(std::move(range));
  }
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) { return a.begin < b.begin; });
  return ranges;
}

const CodeRange* FindCode(const std::vector<CodeRange>& ranges, uintptr_t address) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](uintptr_t value, const CodeRange& range) { return value < range.begin; });
  if (after == ranges.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

}  // namespace tensord::server
