#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/observe/records/trace_context.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {

void FuzzTraceContext(absl::string_view text) {
  if (const std::optional<server::TraceContext> context = server::ParseTraceparent(text)) {
    Require(text.size() >= 55 && absl::AsciiStrToLower(text.substr(0, 55)) == text.substr(0, 55),
            "a traceparent is lower case");
    Require(server::IsSet(context->trace_id) && context->span_id != server::SpanId{}, "ids are set");
    Require(server::ToHex(context->trace_id) == text.substr(3, 32), "the trace is the one that the text names");
    const std::string plain = absl::StrCat("00", text.substr(2, 53));
    Require(server::ParseTraceparent(plain).has_value(), "version 00 has what later ones have");
  }
  if (const std::optional<std::string> state = server::ParseTracestate(text)) {
    Require(state->size() <= 512 && state->size() <= text.size(), "a tracestate is bounded");
    Require(server::ParseTracestate(*state) == state, "what is passed on is passed on as it is");
  }
}

}  // namespace tensord
