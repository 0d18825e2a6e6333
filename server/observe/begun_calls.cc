#include "server/observe/begun_calls.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <string>

#include "absl/strings/numbers.h"

namespace tensord::server {
namespace {

using google::protobuf::Struct;

// 64-bit numbers are text in JSON; what is 0 is left out.
int64_t NumberIn(const Struct& object, const char* name) {
  const auto found = object.fields().find(name);
  int64_t number = 0;
  return found != object.fields().end() && absl::SimpleAtoi(found->second.string_value(), &number) ? number : 0;
}

}  // namespace

int64_t CountBegunCalls() {
  char* const text = grpc_channelz_get_servers(0);
  Struct answer;
  const bool is_read = text != nullptr && google::protobuf::util::JsonStringToMessage(text, &answer).ok();
  gpr_free(text);
  const auto servers = answer.fields().find("server");
  if (!is_read || servers == answer.fields().end()) return 0;
  int64_t calls = 0;
  for (const google::protobuf::Value& server : servers->second.list_value().values()) {
    const auto data = server.struct_value().fields().find("data");
    if (data == server.struct_value().fields().end()) continue;
    calls += NumberIn(data->second.struct_value(), "callsStarted");
  }
  return calls;
}

}  // namespace tensord::server
