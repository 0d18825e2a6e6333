#include "server/observe/health.h"

#include <grpcpp/health_check_service_interface.h>

#include "absl/strings/str_cat.h"

namespace tensord::server {

void Health::EnableService() { grpc::EnableDefaultHealthCheckService(true); }

Health::Health(grpc::Server* server, const std::vector<std::string>& devices)
    : server_(server), names_({"", "tensord.v1.Compute"}) {
  for (const std::string& device : devices) names_.push_back(absl::StrCat("device/", device));
}

void Health::SetServing(bool serving) {
  for (const std::string& name : names_) server_->GetHealthCheckService()->SetServingStatus(name, serving);
}

}  // namespace tensord::server
