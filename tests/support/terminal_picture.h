#pragma once

#include <string>
#include <string_view>

#include "support/terminal_screen.h"

namespace cria::support {

// A picture of what a terminal's screen shows, as SVG, in light or dark colours, as the reader's
// system wants them. It is a picture of one moment, with text, and has no scripts, no fonts and no
// names of other files.
std::string TerminalPicture(const TerminalScreen& screen, std::string_view title);

}  // namespace cria::support
