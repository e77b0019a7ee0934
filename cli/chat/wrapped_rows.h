#pragma once

#include <string_view>

namespace cria::cli {

// On which row, from 0, the end of a text is that libedit has drawn from the beginning of a row at
// `columns_before`, after the terminal has wrapped it again at `columns`. libedit leaves out spaces
// at the end of a row and breaks the line there; other rows that are full are one line for the
// terminal.
int RowAfterResize(std::wstring_view text, int columns_before, int columns);

}  // namespace cria::cli
