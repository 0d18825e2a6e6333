#ifndef TENSORD_SERVER_OBSERVE_HEALTH_H_
#define TENSORD_SERVER_OBSERVE_HEALTH_H_

#include <grpcpp/server.h>

#include <string>
#include <vector>

namespace tensord::server {

// What grpc.health.v1.Health answers: for the server as a whole (""), for "tensord.v1.Compute" and for every device
// ("device/cpu:0"). Thread-safe.
class Health {
 public:
  // Before the server is built: gives servers built from now on the health service, Check and Watch.
  static void EnableService();

  // `server` was built with the service and must outlive this.
  Health(grpc::Server* server, const std::vector<std::string>& devices);

  void SetServing(bool serving);

 private:
  grpc::Server* const server_;
  std::vector<std::string> names_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_HEALTH_H_
