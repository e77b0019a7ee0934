// Holds a conversation, one line a message: chat MODEL

#include <cria/cria.hpp>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " MODEL\n";
    return 2;
  }
  cria::Result<cria::Model> model = cria::Model::Load(argv[1]);
  cria::Result<cria::Chat> chat = model ? cria::Chat::Create(*model) : model.error();
  if (!chat) {
    std::cerr << chat.error().message << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const cria::Result<cria::Reply> reply = chat->Send(line, [](std::string_view text) {
      std::cout << text << std::flush;
      return std::cout.good();
    });
    if (!reply) {
      std::cerr << reply.error().message << "\n";
      return 1;
    }
    std::cout << "\n";
  }
  return 0;
}
