#include "server/rpc/wire/shared_slice.h"

namespace tensord::server {
namespace {

void ReleaseOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

}  // namespace

grpc::Slice SharedSlice(absl::string_view bytes, const std::shared_ptr<const void>& owner) {
  return grpc::Slice(const_cast<char*>(bytes.data()), bytes.size(), &ReleaseOwner,
                     new std::shared_ptr<const void>(owner));
}

}  // namespace tensord::server
