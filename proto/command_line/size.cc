#include "proto/command_line/size.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace tensord::wire {
namespace {

constexpr std::pair<absl::string_view, int64_t> kUnits[] = {{"Ki", int64_t{1} << 10},
                                                            {"Mi", int64_t{1} << 20},
                                                            {"Gi", int64_t{1} << 30},
                                                            {"Ti", int64_t{1} << 40},
                                                            {"k", 1'000},
                                                            {"K", 1'000},
                                                            {"M", 1'000'000},
                                                            {"G", 1'000'000'000},
                                                            {"T", 1'000'000'000'000}};

}  // namespace

std::optional<int64_t> ParseSize(absl::string_view text) {
  absl::string_view digits = text;
  absl::ConsumeSuffix(&digits, "B");
  int64_t unit = 1;
  for (const auto& [name, value] : kUnits) {
    if (unit == 1 && absl::ConsumeSuffix(&digits, name)) unit = value;
  }
  const bool has_digits_alone =
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  int64_t number = 0;
  if (!has_digits_alone || !absl::SimpleAtoi(digits, &number)) return std::nullopt;
  if (number > std::numeric_limits<int64_t>::max() / unit) return std::nullopt;
  return number * unit;
}

}  // namespace tensord::wire
