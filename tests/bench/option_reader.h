#ifndef TENSORD_TESTS_BENCH_OPTION_READER_H_
#define TENSORD_TESTS_BENCH_OPTION_READER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensord {

// The command line of a benchmark: words --name=value or --name, each of which sets a variable.
class OptionReader {
 public:
  void Text(const std::string& name, std::string* target) {
    readers_[name] = [target](absl::string_view value) {
      *target = std::string(value);
      return true;
    };
  }
  template <typename Int>
  void Number(const std::string& name, Int least, Int most, Int* target) {
    readers_[name] = [=](absl::string_view value) {
      return absl::SimpleAtoi(value, target) && *target >= least && *target <= most;
    };
  }

  // A word without a value, --name.
  void Flag(const std::string& name, bool* target) { flags_[name] = target; }

  // Returns false if a word cannot be read; one without dashes only where there are `operands`.
  bool Read(int argc, char** argv, std::vector<std::string>* operands = nullptr) const {
    for (int i = 1; i < argc; ++i) {
      absl::string_view word = argv[i];
      if (!absl::ConsumePrefix(&word, "--")) {
        if (operands == nullptr) return false;
        operands->push_back(std::string(word));
        continue;
      }
      if (const auto flag = flags_.find(std::string(word)); flag != flags_.end()) {
        *flag->second = true;
        continue;
      }
      const size_t equals = word.find('=');
      const auto reader = readers_.find(std::string(word.substr(0, equals)));
      if (equals == absl::string_view::npos || reader == readers_.end()) return false;
      if (!reader->second(word.substr(equals + 1))) return false;
    }
    return true;
  }

 private:
  std::map<std::string, std::function<bool(absl::string_view)>> readers_;
  std::map<std::string, bool*> flags_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_OPTION_READER_H_
