#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar/character_classes.h"
#include "grammar/text_cursor.h"

namespace cria::grammar {

// Reads the parts of a pattern that stand for one character: characters, escapes, classes and `.`.
class PatternCharacters {
 public:
  explicit PatternCharacters(TextCursor& cursor)
      : cursor_(cursor), not_line_terminators_(LineTerminators()) {
    not_line_terminators_.Complement();
  }

  // The characters that the part at the cursor stands for; normalized.
  CharacterSet Read();

 private:
  void ReadClass(size_t position, CharacterSet* set);
  bool ReadClassPart(CharacterSet* set, uint32_t* character);
  bool ReadClassEscape(size_t position, CharacterSet* set);
  void ReadProperty(size_t position, bool is_complement, CharacterSet* set);
  uint32_t ReadCharacterEscape(size_t position);
  uint32_t ReadUnicodeEscape(size_t position);

  TextCursor& cursor_;
  CharacterSet not_line_terminators_;
  UnicodeProperties properties_;
};

}  // namespace cria::grammar
