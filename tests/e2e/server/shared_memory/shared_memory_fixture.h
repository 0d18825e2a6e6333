#ifndef TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_
#define TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/shared_memory/broker_socket.h"

namespace tensord {

// Tests of a server that shares memory, at a socket in a folder of its own.
class SharedMemoryFixture : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/m"; }
  InProcessServer& Start(std::vector<std::string> settings = {}) {
    settings.push_back("shared_memory.listen=unix:" + path());
    server_ = std::make_unique<InProcessServer>(std::move(settings));
    return *server_;
  }
  server::RegionStore::Stats Stats() { return server_->parts().regions->stats(); }
  std::unique_ptr<client::Client> ConnectShared(const std::string& target) {
    auto client = client::Client::Connect({.target = target, .shared_memory = true});
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_NE((*client)->shared_memory(), nullptr);
    return *std::move(client);
  }

  TemporaryFolder folder_;
  std::unique_ptr<InProcessServer> server_;
};

inline v1::SharedSpace Space(const BrokerSocket::Region& region, int64_t offset, int64_t byte_count) {
  v1::SharedSpace space;
  space.set_region(region.id());
  space.set_offset(offset);
  space.set_byte_count(byte_count);
  return space;
}

// The next argument lies there.
inline void AddShared(v1::ExecuteRequest* request, const BrokerSocket::Region& region, int64_t offset, v1::DType dtype,
                      const std::vector<int64_t>& shape, v1::MemoryOrder order = v1::MEMORY_ORDER_UNSPECIFIED) {
  v1::SharedTensor* tensor = request->add_arguments()->mutable_shared();
  tensor->set_dtype(dtype);
  tensor->mutable_shape()->Assign(shape.begin(), shape.end());
  tensor->set_order(order);
  tensor->set_region(region.id());
  tensor->set_offset(offset);
}

// The next result is wanted there.
inline void WantIn(v1::ExecuteRequest* request, const BrokerSocket::Region& region, int64_t offset,
                   int64_t byte_count) {
  *request->add_results()->mutable_shared() = Space(region, offset, byte_count);
}

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_SHARED_MEMORY_FIXTURE_H_
