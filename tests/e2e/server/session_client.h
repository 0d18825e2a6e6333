#ifndef TENSORD_TESTS_E2E_SERVER_SESSION_CLIENT_H_
#define TENSORD_TESTS_E2E_SERVER_SESSION_CLIENT_H_

#include <string>
#include <vector>

#include "tests/e2e/server/in_process_server.h"

namespace tensord {

// y = x + x on f32[n], any n; n is a symbol.
v1::Graph DoubleGraph();

// Says of a request what becomes of its next result.
void Keep(v1::ExecuteRequest* request, const std::string& handle,
          v1::ResultOption::Delivery delivery = v1::ResultOption::DELIVERY_KEEP);
void AddHandle(v1::ExecuteRequest* request, const std::string& handle);
void AddDonated(v1::ExecuteRequest* request, const std::string& handle);

// A session of a server, as its client uses it.
class SessionClient {
 public:
  explicit SessionClient(InProcessServer& server);

  const std::string& id() const { return id_; }
  // A request of the session for a graph, its arguments yet to come.
  v1::ExecuteRequest Request(const v1::Graph& graph) const;
  // The reason of the refusal, or "OK".
  std::string Run(const v1::ExecuteRequest& request, v1::ExecuteResponse* response = nullptr);
  // Keeps these numbers under the handle.
  std::string Put(const std::string& handle, const std::vector<float>& values);
  // The numbers under the handle; empty if there is no such tensor.
  std::vector<float> Get(const std::string& handle);
  std::vector<std::string> Delete(const std::vector<std::string>& handles);
  std::string Close();

 private:
  InProcessServer& server_;
  std::string id_;
};

// "OK", or the reason of the refusal.
std::string ReasonOf(const grpc::Status& status);
// Waits until nothing is left of any session but those that are open.
bool NothingIsLeft(InProcessServer& server);

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_SESSION_CLIENT_H_
