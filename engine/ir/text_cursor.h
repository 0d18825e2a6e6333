#ifndef TENSORD_ENGINE_IR_TEXT_CURSOR_H_
#define TENSORD_ENGINE_IR_TEXT_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "engine/tensor/dim_expr.h"

namespace tensord {

// Walks over the text form of a graph, token by token. White space and comments, from "//" to the end of the line,
// stand before any token. A view: the text outlives it. Refusals say the line and the column, both from 1.
class TextCursor {
 public:
  explicit TextCursor(absl::string_view text) : text_(text) {}

  bool AtEnd();
  // Steps over the token where it is next.
  bool Take(absl::string_view token);
  absl::Status Expect(absl::string_view token);

  // Letters, digits, '_' and '.'; empty if there is none.
  absl::string_view Word();
  // The same with '+' and '-': a number, "-inf", "nan".
  absl::string_view Number();
  absl::StatusOr<int64_t> Integer();
  // Reads text between double quotes; \" \\ \n \t and \xHH are known.
  absl::StatusOr<std::string> Quoted();
  // Returns a word or a quoted string, which may stand after '%'. The word may hold '-' as well.
  absl::StatusOr<std::string> Name();
  // Returns a size expression, up to a ',', ']' or '<' outside of its parentheses.
  absl::StatusOr<DimExpr> Size(bool run_time_symbols = false);

  // Returns the begin of the next token.
  size_t Position();

  absl::Status Error(absl::string_view what) { return ErrorAt(Position(), Refusal::kTextSyntax, what); }
  absl::Status ErrorAt(size_t position, Refusal refusal, absl::string_view what) const;

 private:
  template <typename Predicate>
  absl::string_view TakeWhile(Predicate is_part);
  void SkipSpace();

  absl::string_view text_;
  size_t at_ = 0;
};

// Returns the text in double quotes, as Quoted reads it.
std::string Quote(absl::string_view text);
// Returns a name as Name reads it: bare where it can be.
std::string NameText(absl::string_view name);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_TEXT_CURSOR_H_
