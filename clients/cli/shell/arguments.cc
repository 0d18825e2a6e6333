#include "clients/cli/shell/arguments.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/command_line/nearest_name.h"

namespace tensord::cli {
namespace {

constexpr absl::Duration kLongestTime = absl::Hours(24 * 7);

// "-o" as "--output"; any other word as it is.
std::string WithLongName(absl::Span<const FlagSpec> flags, const std::string& word) {
  if (word.size() != 2 || word[0] != '-' || word[1] == '-') return word;
  const auto flag = std::find_if(flags.begin(), flags.end(), [&](const FlagSpec& f) { return f.letter == word[1]; });
  return flag == flags.end() ? word : absl::StrCat("--", flag->name);
}

std::vector<std::string> NamesOf(absl::Span<const FlagSpec> flags) {
  std::vector<std::string> names;
  for (const FlagSpec& flag : flags) names.push_back(flag.name);
  return names;
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(absl::Span<const FlagSpec> flags, absl::Span<const std::string> words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = WithLongName(flags, words[i]);
    if (word == "--") {
      arguments.positional_.insert(arguments.positional_.end(), words.begin() + static_cast<ptrdiff_t>(i) + 1,
                                   words.end());
      break;
    }
    if (!absl::StartsWith(word, "--")) {
      // "-" alone is a name for standard input, as usual, and "->" begins an equation; other single dashes are slips.
      const bool is_slip = word.size() > 1 && word[0] == '-' && word[1] != '>';
      if (is_slip) return absl::InvalidArgumentError(absl::StrCat("unknown flag: ", word));
      arguments.positional_.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto flag =
        std::find_if(flags.begin(), flags.end(), [&name](const FlagSpec& spec) { return spec.name == name; });
    if (flag == flags.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag: --", name, wire::DidYouMean(name, NamesOf(flags), "--")));
    }
    std::string value;
    if (flag->placeholder.empty()) {
      if (equals != std::string::npos) return absl::InvalidArgumentError(absl::StrCat("flag takes no value: ", word));
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (flag->placeholder.front() == '[') {
      // The value is a word of its own.
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("flag needs a value: --", name, "=", flag->placeholder));
    }
    std::vector<std::string>& values = arguments.values_[name];
    if (!values.empty() && !flag->is_repeatable) {
      return absl::InvalidArgumentError(absl::StrCat("flag is given twice: --", name));
    }
    values.push_back(std::move(value));
  }
  return arguments;
}

bool Arguments::Has(absl::string_view flag) const { return values_.count(std::string(flag)) != 0; }

std::optional<std::string> Arguments::Value(absl::string_view flag) const {
  const auto found = values_.find(std::string(flag));
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::Values(absl::string_view flag) const {
  const auto found = values_.find(std::string(flag));
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseNameAndFile(absl::string_view flag, absl::string_view value) {
  const size_t equals = value.find('=');
  if (equals == absl::string_view::npos || equals == 0 || equals + 1 == value.size()) {
    return absl::InvalidArgumentError(absl::StrCat("flag needs NAME=FILE: --", flag, "=", value));
  }
  return std::make_pair(std::string(value.substr(0, equals)), std::string(value.substr(equals + 1)));
}

absl::StatusOr<absl::Duration> ParseTime(absl::string_view flag, absl::string_view value, absl::Duration least) {
  absl::Duration time;
  if (!absl::ParseDuration(value, &time) || time < least || time > kLongestTime) {
    return absl::InvalidArgumentError(absl::StrCat("flag needs a time such as 30s, from ", absl::FormatDuration(least),
                                                   " to ", absl::FormatDuration(kLongestTime), ": --", flag, "=",
                                                   value));
  }
  return time;
}

}  // namespace tensord::cli
