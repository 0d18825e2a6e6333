#include "engine/ir/text_round_trip.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/canonical.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"

namespace tensord {

absl::StatusOr<Graph> ReadBackFromText(const Graph& graph, const OpRegistry& registry) {
  const std::string text = PrintGraph(graph);
  absl::StatusOr<Graph> again = ParseGraph(text, registry);
  if (!again.ok()) {
    return Refuse(Refusal::kInternal, absl::StrCat("a printed graph does not parse: ", again.status().message()));
  }
  if (CanonicalBytes(*again) != CanonicalBytes(graph)) {
    return Refuse(Refusal::kInternal, absl::StrCat("a printed graph parses as another one:\n", text));
  }
  if (PrintGraph(*again) != text) {
    return Refuse(Refusal::kInternal, absl::StrCat("a parsed graph prints as another text:\n", text));
  }
  return again;
}

}  // namespace tensord
