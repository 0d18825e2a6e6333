#include "clients/cli/operators/prometheus_text.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tensord::cli {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }
bool IsNamePart(char c) { return IsNameStart(c) || absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// Reads one line from its front; every read answers false if the line has something else there.
class LineReader {
 public:
  explicit LineReader(absl::string_view line) : rest_(line) {}

  absl::string_view rest() const { return rest_; }

  void SkipSpaces() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
  }

  bool Take(char c) {
    SkipSpaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool ReadName(std::string* name) {
    SkipSpaces();
    if (rest_.empty() || !IsNameStart(rest_.front())) return false;
    size_t size = 1;
    while (size < rest_.size() && IsNamePart(rest_[size])) ++size;
    *name = std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return true;
  }

  // Reads text in double quotes; \\, \" and \n mean the same as in C.
  bool ReadQuoted(std::string* value) {
    if (!Take('"')) return false;
    value->clear();
    while (!rest_.empty() && rest_.front() != '"') {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = rest_.front() == 'n' ? '\n' : rest_.front();
        rest_.remove_prefix(1);
      }
      value->push_back(c);
    }
    return Take('"');
  }

  bool ReadLabels(std::map<std::string, std::string>* labels) {
    if (!Take('{')) return true;
    while (!Take('}')) {
      std::string name;
      std::string value;
      if (!ReadName(&name) || !Take('=') || !ReadQuoted(&value)) return false;
      (*labels)[std::move(name)] = std::move(value);
      if (Take(',')) continue;
      return Take('}');
    }
    return true;
  }

  bool ReadNumber(double* value) {
    SkipSpaces();
    size_t size = 0;
    while (size < rest_.size() && !IsSpace(rest_[size])) ++size;
    const absl::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return !word.empty() && absl::SimpleAtod(word, value);
  }

 private:
  absl::string_view rest_;
};

bool ReadSample(absl::string_view line, MetricSample* sample) {
  LineReader reader(line);
  if (!reader.ReadName(&sample->name) || !reader.ReadLabels(&sample->labels) || !reader.ReadNumber(&sample->value)) {
    return false;
  }
  reader.SkipSpaces();
  double timestamp = 0;
  return reader.rest().empty() || (reader.ReadNumber(&timestamp) && (reader.SkipSpaces(), reader.rest().empty()));
}

}  // namespace

absl::StatusOr<std::vector<MetricSample>> ParsePrometheusText(absl::string_view text) {
  std::vector<MetricSample> samples;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    MetricSample sample;
    if (!ReadSample(line, &sample)) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " is no metric: ", line.substr(0, 200)));
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace tensord::cli
