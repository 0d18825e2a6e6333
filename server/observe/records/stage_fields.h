#ifndef TENSORD_SERVER_OBSERVE_RECORDS_STAGE_FIELDS_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_STAGE_FIELDS_H_

#include "absl/strings/string_view.h"

namespace tensord::server {

// The log's field names of stage times, by stage.
inline constexpr absl::string_view kStageFields[] = {
#define TENSORD_STAGE(member, name, help) name "_us",
#include "server/observe/records/stages.def"
#undef TENSORD_STAGE
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_STAGE_FIELDS_H_
