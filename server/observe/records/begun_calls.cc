#include "server/observe/records/begun_calls.h"

#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include "channelz/servers.pb.h"

namespace tensord::server {

int64_t CountBegunCalls() {
  char* const text = grpc_channelz_get_servers(0);
  if (text == nullptr) return 0;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  channelz::Servers servers;
  const bool is_read = google::protobuf::util::JsonStringToMessage(text, &servers, options).ok();
  gpr_free(text);
  if (!is_read) return 0;
  int64_t calls = 0;
  for (const channelz::Server& server : servers.server()) calls += server.data().calls_started();
  return calls;
}

}  // namespace tensord::server
