#include "tensord/execute_options.h"

#include "tensord/v1/compute.pb.h"

namespace tensord::client {

v1::CompileOptions ToCompileOptions(const ExecuteOptions& options) {
  v1::CompileOptions result;
  result.set_device(options.device);
  for (const std::string& pass : options.disabled_passes) result.add_disabled_passes(pass);
  result.set_order(ToWire(options.order));
  return result;
}

}  // namespace tensord::client
