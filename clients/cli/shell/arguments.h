#ifndef TENSORD_CLIENTS_CLI_SHELL_ARGUMENTS_H_
#define TENSORD_CLIENTS_CLI_SHELL_ARGUMENTS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace tensord::cli {

// A flag that a command takes.
struct FlagSpec {
  std::string name;         // without the dashes
  std::string placeholder;  // what its value is, for the help text; empty: none; "[FILE]": it may be left out
  std::string help;
  bool is_repeatable = false;
  char letter = 0;  // 'o' where "-o value" is short for "--output=value"
};

// The words after a command's name, read by its flags: "--name=value", "--name value", "--name" if the flag takes no
// value, "-o value" for a flag with a letter. All other words are positional (also "-", and words that begin with
// "->"), and so are all words after "--".
class Arguments {
 public:
  // Parses the words. INVALID_ARGUMENT names the flag that is unknown, lacks its value, has one that it does not take,
  // or is given twice.
  static absl::StatusOr<Arguments> Parse(absl::Span<const FlagSpec> flags, absl::Span<const std::string> words);

  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(absl::string_view flag) const;
  // Returns the flag's value; none if it was not given.
  std::optional<std::string> Value(absl::string_view flag) const;
  // Returns all values of a repeatable flag, in order.
  std::vector<std::string> Values(absl::string_view flag) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

// "x=a.npy" as {"x", "a.npy"}. INVALID_ARGUMENT names the flag where one side is missing.
absl::StatusOr<std::pair<std::string, std::string>> ParseNameAndFile(absl::string_view flag, absl::string_view value);

// Returns a time such as "30s", from `least` to a week. INVALID_ARGUMENT names the flag.
absl::StatusOr<absl::Duration> ParseTime(absl::string_view flag, absl::string_view value, absl::Duration least);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_ARGUMENTS_H_
