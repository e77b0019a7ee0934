// cria-fake-hub ORG/NAME FOLDER: a hub that has the files of the folder as this model, and a GGUF
// file of random weights with the name FILE.gguf. It prints its URL, and ends when its standard
// input does.

#include <cstdio>
#include <exception>

#include "converter/hub/fake_hub.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

int main(int argc, char** argv) {
  using namespace cria;
  if (argc != 3) return 2;
  try {
    FakeHub hub;
    hub.repository = argv[1];
    hub.AddFolder(argv[2]);
    const support::TemporaryDirectory folder;
    const auto gguf = support::WriteGguf(support::MakeModel(support::SpecGqa()),
                                         support::StorageType::kF32, folder / "FILE.gguf");
    hub.files["FILE.gguf"] = support::ReadFile(gguf);
    std::puts(hub.url().c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cria-fake-hub: %s\n", exception.what());
    return 1;
  }
}
