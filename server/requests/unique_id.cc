#include "server/requests/unique_id.h"

#include <random>
#include <string_view>

namespace cria::server {

std::string UniqueId(size_t length) {
  static constexpr std::string_view kCharacters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{std::random_device()()};
  std::uniform_int_distribution<size_t> place(0, kCharacters.size() - 1);
  std::string id;
  for (size_t i = 0; i < length; ++i) id += kCharacters[place(random)];
  return id;
}

}  // namespace cria::server
