# Writes OUTPUT, a source with the bytes of FILE as the function ShippedText().
cmake_minimum_required(VERSION 3.27)

file(READ ${FILE} bytes HEX)
string(LENGTH "${bytes}" length)
math(EXPR length "${length} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"converter/calibrate/shipped_text.h\"

namespace cria {

std::string_view ShippedText() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), ${length}};
}

}  // namespace cria
")
