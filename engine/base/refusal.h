#ifndef TENSORD_ENGINE_BASE_REFUSAL_H_
#define TENSORD_ENGINE_BASE_REFUSAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace tensord {

// The reason of a refusal. Declared once, in refusals.def.
enum class Refusal : uint8_t {
#define TENSORD_REFUSAL(name, id, code, doc) name,
#include "engine/base/refusals.def"
#undef TENSORD_REFUSAL
};

struct RefusalInfo {
  Refusal refusal;
  absl::string_view id;  // stable; clients match on it
  absl::StatusCode code;
  absl::string_view doc;
};

// Returns all refusals, in the order of their ids.
absl::Span<const RefusalInfo> AllRefusals();
const RefusalInfo& InfoOf(Refusal refusal);

// The information of a status beyond its code and message; becomes tensord.v1.ErrorDetail on the wire.
struct RefusalDetail {
  std::string reason;
  std::string node;
  std::string op;
  std::string limit;
  int64_t limit_value = 0;
  int64_t actual_value = 0;
  absl::Duration retry_after;  // zero: not said
};

// Returns a status with the refusal's canonical code. The message names the fault, ends with the values, and leaves out
// the node: a caller that knows the node adds it by WithNode.
absl::Status Refuse(Refusal refusal, absl::string_view message);

// The same for a limit: names the limit, its value and the request's.
absl::Status RefuseLimit(absl::string_view limit, int64_t limit_value, int64_t actual_value, absl::string_view what);
// Refuses likewise for a limit with another refusal than LIMIT_EXCEEDED, with the time after which to try again.
absl::Status RefuseLimit(Refusal refusal, absl::string_view limit, int64_t limit_value, int64_t actual_value,
                         absl::string_view what, absl::Duration retry_after = absl::ZeroDuration());

// Says when it is worth trying again. A status that carries no refusal, and OK, stay as they are.
absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after);

// Names the node that a refusal is about, in the detail and at the end of the message. A status that names a node
// already, or carries no refusal, is only completed, never overwritten. OK stays OK.
absl::Status WithNode(absl::Status status, absl::string_view node, absl::string_view op);

// The same refusal with another name in the place of the node's that WithNode gave it.
absl::Status WithOtherNode(absl::Status status, absl::string_view node);

// Returns the detail of a refusal; nothing if the status carries none (OK, or made elsewhere).
std::optional<RefusalDetail> DetailOf(const absl::Status& status);
bool IsRefusal(const absl::Status& status, Refusal refusal);  // whether it is that one

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_REFUSAL_H_
