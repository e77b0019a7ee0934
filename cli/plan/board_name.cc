#include "cli/plan/board_name.h"

#include <string>

#include "core/format.h"

namespace cria::cli {

Result<const raspberry_pi::Board*> BoardNamed(std::string_view name) {
  if (const raspberry_pi::Board* board = raspberry_pi::FindBoard(name)) return board;
  std::string names;
  for (const raspberry_pi::Board& board : raspberry_pi::Boards()) {
    names += (names.empty() ? "" : ", ") + std::string(board.name);
  }
  return Fail(ErrorCode::kUsage,
              Format("there is no board \"{}\"; the boards are {}", name, names));
}

}  // namespace cria::cli
