#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cria::tests {

// The bytes of a POST request with a JSON body.
inline std::string JsonRequest(const std::string& path, const nlohmann::json& body) {
  const std::string text = body.dump();
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

}  // namespace cria::tests
