#include "engine/families/einsum/equation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"

namespace tensord {
namespace {

constexpr size_t kQuotedLength = 80;

absl::Status Invalid(absl::string_view what, absl::string_view text) {
  const absl::string_view shown = text.substr(0, kQuotedLength);
  const std::string quoted =
      IsUtf8(shown) ? absl::StrCat("\"", shown, shown.size() < text.size() ? "…\"" : "\"") : "bytes that are not UTF-8";
  return Refuse(Refusal::kAttributeInvalid, absl::StrCat("equation ", what, ": ", quoted));
}

// Returns the character at the start of well-formed UTF-8, and its bytes.
std::pair<int64_t, size_t> FirstCharacter(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  int64_t character = byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) character = character << 6 | (byte(i) & 0x3F);
  return {character, length};
}

bool IsLabel(int64_t character) {
  if (character < 0x80) return absl::ascii_isalnum(static_cast<unsigned char>(character));
  const bool is_control = character < 0xA0;
  const bool is_space = character == 0xA0 || character == 0x1680 || (character >= 0x2000 && character <= 0x200F) ||
                        (character >= 0x2028 && character <= 0x202F) || (character >= 0x205F && character <= 0x206F) ||
                        character == 0x3000 || character == 0xFEFF;
  return !is_control && !is_space;
}

// One side of the arrow, read term by term.
class SideReader {
 public:
  SideReader(absl::string_view whole, absl::string_view side) : whole_(whole), rest_(side) {}

  bool done() const { return rest_.empty(); }

  // Takes the character if it is next.
  bool Take(char c) {
    SkipSpaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Reads labels up to another character. `after_group`: there must be none.
  absl::StatusOr<std::vector<int64_t>> Term() {
    std::vector<int64_t> labels;
    while (SkipSpaces(), !rest_.empty()) {
      if (rest_[0] == '.') {
        if (rest_.substr(0, 3) != "...") return Invalid("has a dot outside of \"...\"", whole_);
        if (std::find(labels.begin(), labels.end(), kEllipsis) != labels.end()) {
          return Invalid("has two ellipses in a term", whole_);
        }
        rest_.remove_prefix(3);
        labels.push_back(kEllipsis);
        continue;
      }
      const auto [character, length] = FirstCharacter(rest_);
      if (!IsLabel(character)) break;
      labels.push_back(character);
      rest_.remove_prefix(length);
    }
    return labels;
  }

 private:
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view whole_, rest_;
};

// Ids of steps before the number of operands is known: -1, -2, ….
int StepId(size_t step) { return -1 - static_cast<int>(step); }

// The members of a group become one from left to right.
struct Group {
  std::optional<int> made;

  void Add(int member, ContractionPath* path) {
    if (!made.has_value()) {
      made = member;
      return;
    }
    path->push_back({*made, member});
    made = StepId(path->size() - 1);
  }
};

absl::Status ReadOperands(absl::string_view text, absl::string_view side, Equation* equation) {
  SideReader reader(text, side);
  std::vector<Group> open(1);
  bool has_groups = false;
  while (true) {
    while (reader.Take('(')) {
      has_groups = true;
      open.emplace_back();
    }
    ASSIGN_OR_RETURN(std::vector<int64_t> term, reader.Term());
    open.back().Add(static_cast<int>(equation->operands.size()), &equation->groups);
    equation->operands.push_back(std::move(term));
    while (reader.Take(')')) {
      if (open.size() == 1) return Invalid("closes a parenthesis that is not open", text);
      const int made = *open.back().made;
      open.pop_back();
      open.back().Add(made, &equation->groups);
    }
    if (reader.Take(',')) continue;
    if (reader.done()) break;
    if (reader.Take('(')) return Invalid("opens a parenthesis within a term", text);
    if (reader.Take('-') || reader.Take('>')) return Invalid("does not have one arrow", text);
    ASSIGN_OR_RETURN(term, reader.Term());
    if (!term.empty()) return Invalid("has labels behind a closing parenthesis", text);
    return Invalid("has a character that is no label", text);
  }
  if (open.size() > 1) return Invalid("leaves a parenthesis open", text);
  if (!has_groups) equation->groups.clear();
  const int operands = static_cast<int>(equation->operands.size());
  for (auto& [a, b] : equation->groups) {
    if (a < 0) a = operands - 1 - a;
    if (b < 0) b = operands - 1 - b;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Equation> ParseEquation(absl::string_view text) {
  if (!IsUtf8(text)) return Invalid("has a character that is no label", text);
  const std::vector<absl::string_view> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) return Invalid("does not have one arrow", text);
  Equation equation;
  RETURN_IF_ERROR(ReadOperands(text, sides[0], &equation));
  SideReader reader(text, sides[1]);
  ASSIGN_OR_RETURN(equation.output, reader.Term());
  if (reader.done()) return equation;
  if (reader.Take('(') || reader.Take(')')) return Invalid("has a parenthesis in the output", text);
  if (reader.Take(',')) return Invalid("has several outputs", text);
  return Invalid("has a character that is no label", text);
}

}  // namespace tensord
