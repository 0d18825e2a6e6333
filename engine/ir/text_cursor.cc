#include "engine/ir/text_cursor.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tensord {
namespace {

bool IsWordPart(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

bool IsNamePart(char c) { return IsWordPart(c) || c == '-'; }

bool IsPlain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '"' && c != '\\'; }

// -1 for any other character.
int HexDigit(char c) {
  if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return -1;
  return absl::ascii_isdigit(static_cast<unsigned char>(c))
             ? c - '0'
             : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

}  // namespace

void TextCursor::SkipSpace() {
  while (at_ < text_.size()) {
    if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (absl::StartsWith(text_.substr(at_), "//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool TextCursor::AtEnd() {
  SkipSpace();
  return at_ == text_.size();
}

size_t TextCursor::Position() {
  SkipSpace();
  return at_;
}

bool TextCursor::Take(absl::string_view token) {
  SkipSpace();
  if (!absl::StartsWith(text_.substr(at_), token)) return false;
  at_ += token.size();
  return true;
}

absl::Status TextCursor::Expect(absl::string_view token) {
  if (Take(token)) return absl::OkStatus();
  return Error(absl::StrCat("expected '", token, "'"));
}

template <typename Predicate>
absl::string_view TextCursor::TakeWhile(Predicate is_part) {
  SkipSpace();
  const size_t begin = at_;
  while (at_ < text_.size() && is_part(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

absl::string_view TextCursor::Word() { return TakeWhile(IsWordPart); }

absl::string_view TextCursor::Number() {
  return TakeWhile([](char c) { return IsNamePart(c) || c == '+'; });
}

absl::StatusOr<int64_t> TextCursor::Integer() {
  const size_t begin = Position();
  const absl::string_view digits = Number();
  int64_t value = 0;
  if (digits.empty() || digits[0] == '+' || !absl::SimpleAtoi(digits, &value)) {
    return ErrorAt(begin, Refusal::kTextSyntax, "expected an integer of 64 bits");
  }
  return value;
}

absl::StatusOr<std::string> TextCursor::Quoted() {
  const size_t begin = Position();
  if (!Take("\"")) return Error("expected a text in double quotes");
  std::string value;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return value;
    if (c == '\n') break;
    if (c != '\\') {
      value.push_back(c);
      continue;
    }
    const absl::string_view rest = text_.substr(at_);
    if (absl::StartsWith(rest, "n")) {
      value.push_back('\n');
    } else if (absl::StartsWith(rest, "t")) {
      value.push_back('\t');
    } else if (absl::StartsWith(rest, "\"") || absl::StartsWith(rest, "\\")) {
      value.push_back(rest[0]);
    } else if (rest.size() >= 3 && rest[0] == 'x' && HexDigit(rest[1]) >= 0 && HexDigit(rest[2]) >= 0) {
      value.push_back(static_cast<char>(HexDigit(rest[1]) << 4 | HexDigit(rest[2])));
      at_ += 2;
    } else {
      return ErrorAt(at_ - 1, Refusal::kTextSyntax, "unknown escape; there are \\\" \\\\ \\n \\t and \\xHH");
    }
    ++at_;
  }
  return ErrorAt(begin, Refusal::kTextSyntax, "a text in double quotes does not end on its line");
}

absl::StatusOr<std::string> TextCursor::Name() {
  SkipSpace();
  if (at_ < text_.size() && text_[at_] == '"') return Quoted();
  const absl::string_view name = TakeWhile(IsNamePart);
  if (name.empty()) return Error("expected a name");
  return std::string(name);
}

absl::StatusOr<DimExpr> TextCursor::Size(bool run_time_symbols) {
  const size_t begin = Position();
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (depth == 0 && (c == ',' || c == ']' || c == '<')) break;
    if (c == '\n') break;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    ++at_;
  }
  absl::StatusOr<DimExpr> size =
      ParseDimExpr(absl::StripTrailingAsciiWhitespace(text_.substr(begin, at_ - begin)), run_time_symbols);
  if (!size.ok()) return ErrorAt(begin, Refusal::kTextSyntax, size.status().message());
  return size;
}

absl::Status TextCursor::ErrorAt(size_t position, Refusal refusal, absl::string_view what) const {
  const absl::string_view before = text_.substr(0, position);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return Refuse(refusal, absl::StrCat("line ", 1 + std::count(before.begin(), before.end(), '\n'), ", column ",
                                      1 + position - line_begin, ": ", what));
}

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (IsPlain(c)) {
      quoted.push_back(c);
    } else if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
  quoted.push_back('"');
  return quoted;
}

std::string NameText(absl::string_view name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), IsNamePart);
  return bare ? std::string(name) : Quote(name);
}

}  // namespace tensord
