#include "server/config/json_fields.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

// How protobuf's JSON spells a field: "name_bytes" and "nameBytes" are the same.
std::string Canonical(absl::string_view name) {
  std::string spelled;
  bool is_capital = false;
  for (const char c : name) {
    if (c != '_') spelled.push_back(is_capital ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c);
    is_capital = c == '_';
  }
  return spelled;
}

// Walks over the tokens of a text once. A name stands before a colon; protobuf also takes it in single quotes, and
// without any.
class FieldScan {
 public:
  explicit FieldScan(absl::string_view text) : text_(text) {}

  absl::Status Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        ReadString(c);
      } else if (IsOfWord(c)) {
        ReadWord();
      } else {
        ++at_;
        RETURN_IF_ERROR(TakeSign(c));
      }
    }
    return absl::OkStatus();
  }

 private:
  // An object or a list that is open.
  struct Level {
    std::string path;   // of the field that it is
    std::string field;  // that is being read
    absl::flat_hash_set<std::string> fields;
  };

  static bool IsOfWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

  static std::string PathOf(const Level& level) {
    return absl::StrCat(level.path, level.path.empty() || level.field.empty() ? "" : ".", level.field);
  }

  void ReadString(char quote) {
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    last_ = text_.substr(begin, at_ - begin);
    ++at_;
  }

  void ReadWord() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsOfWord(text_[at_])) ++at_;
    last_ = text_.substr(begin, at_ - begin);
  }

  absl::Status TakeSign(char c) {
    if (c == '{' || c == '[') {
      open_.push_back({.path = open_.empty() ? "" : PathOf(open_.back()), .field = "", .fields = {}});
    } else if ((c == '}' || c == ']') && !open_.empty()) {
      open_.pop_back();
    } else if (c == ':' && !open_.empty()) {
      return AddField(&open_.back());
    }
    return absl::OkStatus();
  }

  absl::Status AddField(Level* level) {
    level->field = std::string(last_);
    if (last_.find('\\') != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name of a setting is written without escapes, not as \"", PathOf(*level), "\""));
    }
    if (level->fields.insert(Canonical(last_)).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("setting ", PathOf(*level), " is there twice"));
  }

  const absl::string_view text_;
  size_t at_ = 0;
  absl::string_view last_;  // string or word
  std::vector<Level> open_;
};

}  // namespace

absl::Status CheckFieldsAreOnce(absl::string_view json) { return FieldScan(json).Run(); }

}  // namespace tensord::server
