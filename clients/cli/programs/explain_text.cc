#include "clients/cli/programs/explain_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensord::cli {
namespace {

// Reads a line from its left. A missing word reads as nothing and stays.
class Words {
 public:
  explicit Words(absl::string_view line) : rest_(line) { SkipSpaces(); }

  absl::string_view rest() const { return rest_; }

  bool Skip(absl::string_view text) {
    if (!absl::ConsumePrefix(&rest_, text)) return false;
    SkipSpaces();
    return true;
  }

  // %12
  std::optional<int64_t> Value() {
    absl::string_view rest = rest_;
    if (!absl::ConsumePrefix(&rest, "%")) return std::nullopt;
    size_t digits = 0;
    while (digits < rest.size() && absl::ascii_isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
    int64_t value = 0;
    if (!absl::SimpleAtoi(rest.substr(0, digits), &value)) return std::nullopt;
    rest_ = rest.substr(digits);
    SkipSpaces();
    return value;
  }

  // In double quotes.
  std::optional<std::string> Name() {
    if (rest_.empty() || rest_[0] != '"') return std::nullopt;
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    std::string name;
    if (end >= rest_.size() || !absl::CUnescape(rest_.substr(1, end - 1), &name)) return std::nullopt;
    rest_.remove_prefix(end + 1);
    SkipSpaces();
    return name;
  }

  // Returns all up to one of the characters, which stays.
  absl::string_view Until(absl::string_view characters) {
    const size_t end = std::min(rest_.find_first_of(characters), rest_.size());
    const absl::string_view word = absl::StripTrailingAsciiWhitespace(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

 private:
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view rest_;
};

class ExplainReader {
 public:
  absl::StatusOr<ExplainedProgram> Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) ReadLine(line);
    if (!found_) return absl::NotFoundError("the server's text describes no program that this tensordctl can read");
    return std::move(program_);
  }

 private:
  using Segment = ExplainedProgram::Segment;

  void ReadLine(absl::string_view line) {
    Words words(line);
    if (words.rest().empty() || words.rest()[0] == '|') return;
    if (words.rest()[0] == '%') return ReadValues(words);
    if (words.Skip("program ")) return ReadProgram(words);
    if (words.Skip("output ")) return ReadOutput(words);
    if (words.Skip("stage ")) return ReadStage(words);
    if (words.Skip("session ")) {
      segment_ = nullptr;
      program_.sessions.push_back({.title = absl::StrCat("session ", words.rest()), .stage = stage_});
    } else if (words.Skip("segment ")) {
      ReadSegment(words);
    } else if (segment_ != nullptr && words.Skip("nodes ")) {
      while (std::optional<std::string> name = words.Name()) {
        segment_->nodes.push_back(*std::move(name));
        words.Skip(",");
      }
    } else if (segment_ != nullptr && words.Skip("moves ")) {
      segment_->moves = std::string(words.rest());
    }
  }

  void ReadProgram(Words words) {
    const std::optional<std::string> name = words.Name();
    if (!name.has_value() || !words.Skip("on ")) return;
    found_ = true;
    program_.name = *name;
    program_.device = std::string(words.Until(","));
  }

  void ReadOutput(Words words) {
    const std::optional<std::string> name = words.Name();
    if (!name.has_value() || !words.Skip("=")) return;
    if (const std::optional<int64_t> value = words.Value()) program_.outputs.push_back({*name, *value});
  }

  void ReadStage(Words words) {
    segment_ = nullptr;
    int64_t stage = 0;
    if (!absl::SimpleAtoi(words.Until(","), &stage)) return;
    stage_ = stage;
    words.Skip(",");
    words.Skip("when the host has read ");
    while (const std::optional<int64_t> value = words.Value()) {
      if (!words.Skip("and decided ")) return;
      program_.decisions.push_back({.stage = stage, .value = *value, .symbol = std::string(words.Until(","))});
      // The bound may hold commas itself: min(a,b).
      const size_t next = words.rest().find(", %");
      if (next == absl::string_view::npos) return;
      words = Words(words.rest().substr(next + 1));
    }
  }

  void ReadSegment(Words words) {
    words.Until(":");
    if (!words.Skip(":")) return;
    if (program_.sessions.empty()) program_.sessions.push_back({.title = "session", .stage = stage_});
    segment_ = &program_.sessions.back().segments.emplace_back();
    segment_->kernel = std::string(words.rest());
  }

  // A declaration, or the instruction of a segment.
  void ReadValues(Words words) {
    std::vector<int64_t> values;
    do {
      const std::optional<int64_t> value = words.Value();
      if (!value.has_value()) return;
      values.push_back(*value);
    } while (words.Skip(","));
    if (words.Skip("=")) return ReadInstruction(std::move(values), words);
    ExplainedProgram::Value declared;
    if (words.Skip("input ")) {
      declared.kind = ExplainedProgram::ValueKind::kInput;
    } else if (words.Skip("constant")) {
      declared.kind = ExplainedProgram::ValueKind::kConstant;
    } else if (!words.Skip("node ")) {
      return;
    }
    if (declared.kind != ExplainedProgram::ValueKind::kConstant) {
      std::optional<std::string> name = words.Name();
      if (!name.has_value()) return;
      declared.name = *std::move(name);
    }
    const absl::string_view memory = words.Until(":");
    const size_t view = memory.rfind("view of %");
    if (view != absl::string_view::npos) {
      declared.view_of = Words(memory.substr(view + 8)).Value().value_or(-1);
    }
    if (!words.Skip(":")) return;
    declared.type = std::string(words.rest());
    program_.values[values[0]] = std::move(declared);
  }

  void ReadInstruction(std::vector<int64_t> results, Words words) {
    if (segment_ == nullptr || !segment_->results.empty()) return;
    words.Until("(");
    if (!words.Skip("(")) return;
    segment_->results = std::move(results);
    while (const std::optional<int64_t> operand = words.Value()) {
      segment_->operands.push_back(*operand);
      words.Skip("!");
      words.Skip(",");
    }
  }

  ExplainedProgram program_;
  bool found_ = false;
  int64_t stage_ = 0;
  Segment* segment_ = nullptr;  // of program_; the one that lines belong to
};

}  // namespace

absl::StatusOr<ExplainedProgram> ParseExplainText(absl::string_view text) { return ExplainReader().Read(text); }

}  // namespace tensord::cli
