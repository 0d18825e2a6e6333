#ifndef TENSORD_TESTS_E2E_SERVER_DEVICE_CLIENT_H_
#define TENSORD_TESTS_E2E_SERVER_DEVICE_CLIENT_H_

#include <string>
#include <vector>

#include "tests/e2e/server/session_client.h"

namespace tensord {

v1::ServerInfo InfoWithCapabilities(InProcessServer& server);
// Returns the names of the devices.
std::vector<std::string> DevicesIn(const v1::ServerInfo& info);

// Returns the request for a device.
v1::ExecuteRequest On(const std::string& device, v1::ExecuteRequest request);
// Returns the device that the request ran on, or the reason of its refusal.
std::string RanOn(InProcessServer& server, const v1::ExecuteRequest& request, std::vector<float>* result = nullptr);

// Uploads these numbers to a device; empty: the default. Returns "OK", or the reason of the refusal.
std::string PutOn(InProcessServer& server, const SessionClient& session, const std::string& device,
                  const std::string& handle, const std::vector<float>& values);
// Returns the numbers under the handle, and the reason if they do not come.
std::vector<float> Downloaded(InProcessServer& server, const SessionClient& session, const std::string& handle,
                              std::string* reason = nullptr);

// Returns the bytes of resident tensors on a device.
int64_t BytesOn(InProcessServer& server, const std::string& device);

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_DEVICE_CLIENT_H_
