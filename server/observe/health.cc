#include "server/observe/health.h"

#include <grpcpp/health_check_service_interface.h>

#include "absl/strings/str_cat.h"

namespace tensord::server {

void Health::EnableService() { grpc::EnableDefaultHealthCheckService(true); }

Health::Health(const std::vector<std::string>& devices) : names_({"", "tensord.v1.Compute"}) {
  for (const std::string& device : devices) names_.push_back(absl::StrCat("device/", device));
}

void Health::Tell(grpc::Server* server) {
  for (const std::string& name : names_) server->GetHealthCheckService()->SetServingStatus(name, serving_);
}

void Health::Add(grpc::Server* server) {
  MutexLock lock(&mutex_);
  servers_.push_back(server);
  Tell(server);
}

void Health::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  serving_ = serving;
  for (grpc::Server* server : servers_) Tell(server);
}

bool Health::serving() const {
  MutexLock lock(&mutex_);
  return serving_;
}

}  // namespace tensord::server
