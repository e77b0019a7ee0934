# Writes OUTPUT, a source with the FILES of FOLDER as the function PageFiles(). index.html is "/"; every other file is
# "/page/NAME". Of scripts and styles, indentation is left out, of scripts also the lines that are only a comment, of
# styles spaces that mean nothing. All lines stay, so that the browser's numbers of lines are those of the sources.
cmake_minimum_required(VERSION 3.27)

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  # As hexadecimal digits, because CMake's lists and strings change some characters. A line feed is 0a, a space 20; the
  # letter x before each byte keeps the two digits of one byte together.
  file(READ ${FOLDER}/${file} bytes HEX)
  string(REGEX REPLACE "(..)" "x\\1" bytes "0a${bytes}")
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  if(extension MATCHES "^(css|js)$")
    string(REGEX REPLACE "x0a(x20)+" "x0a" bytes "${bytes}")
  endif()
  if(extension STREQUAL "css")
    # The spaces behind a colon, semicolon, comma or brace.
    string(REGEX REPLACE "(x3a|x3b|x2c|x7b)x20" "\\1" bytes "${bytes}")
  endif()
  if(extension STREQUAL "js")
    string(REGEX REPLACE "x0ax2fx2f(x[1-9a-f].|x0[^a])*" "x0a" bytes "${bytes}")
  endif()
  string(SUBSTRING "${bytes}" 3 -1 bytes)  # Without the line feed that was added in front.
  string(LENGTH "${bytes}" length)
  math(EXPR length "${length} / 3")
  string(REPLACE "x" ",0x" bytes "${bytes}")
  string(SUBSTRING "${bytes}" 1 -1 bytes)
  set(path "/page/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "      {\"${path}\", \"${type_${extension}}\", Text(kFile${number}, ${length})},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUTPUT} "#include \"server/page/page.h\"

namespace cria::server {
namespace {

${arrays}
std::string_view Text(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::span<const PageFile> PageFiles() {
  static const PageFile files[] = {
${rows}  };
  return files;
}

}  // namespace cria::server
")
