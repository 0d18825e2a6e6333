#ifndef TENSORD_SERVER_OBSERVE_HEALTH_H_
#define TENSORD_SERVER_OBSERVE_HEALTH_H_

#include <grpcpp/server.h>

#include <string>
#include <vector>

#include "engine/base/mutex.h"

namespace tensord::server {

// The answers of grpc.health.v1.Health, on every listener the same: for the server as a whole (""), for
// "tensord.v1.Compute" and for every device ("device/cpu:0"). Thread-safe.
class Health {
 public:
  // Gives servers built from now on the health service, Check and Watch; called before the server is built.
  static void EnableService();

  // Makes the state in which nobody is served yet.
  explicit Health(const std::vector<std::string>& devices);

  // `server` was built with the service and must outlive this.
  void Add(grpc::Server* server);
  void SetServing(bool serving);
  bool serving() const;

 private:
  void Tell(grpc::Server* server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<std::string> names_;  // constant
  mutable Mutex mutex_;
  std::vector<grpc::Server*> servers_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_HEALTH_H_
