#include "cli/program.h"

#include <langinfo.h>

#include <clocale>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>

#include "cli/ends.h"
#include "cli/messages.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/standard_streams.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

// What is typed is UTF-8, as nearly every terminal sends, even if the locale is another one or does
// not exist. The format of numbers does not depend on the locale.
void UseUtf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr ||
      std::string_view(nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

}  // namespace

int RunMain(int argc, char** argv, Status (*run)(std::span<char* const> arguments)) {
  TakeClosedStreams();
  UseUtf8();
  platform::UseOneHeap();
  InstallEndHandlers("cria", "ask for less context or fewer threads");
  try {
    const Status result = run(std::span(argv, static_cast<size_t>(argc)).subspan(1));
    return result ? FinishOutput("cria") : ReportError("cria", result.error());
  } catch (const std::exception& exception) {
    // Errors of Cria are values; only another library throws here.
    std::fprintf(stderr, "cria: error: %s\n", Printable(exception.what()).c_str());
    return kExitError;
  }
}

}  // namespace cria::cli
