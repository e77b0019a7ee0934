# Writes OUTPUT, a source with the FILES of FOLDER as the function PageFiles(). index.html is "/"; every other file is
# "/page/NAME". Of scripts and styles, indentation is left out, of scripts also the lines that are only a comment. All
# lines stay, so that the browser's numbers of lines are those of the sources. Then each file is compressed by gzip.
cmake_minimum_required(VERSION 3.27)

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(arrays "")
set(rows "")
set(number 0)
get_filename_component(work ${OUTPUT} DIRECTORY)
foreach(file IN LISTS FILES)
  file(READ ${FOLDER}/${file} text)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  if(extension MATCHES "^(css|js)$")
    string(REGEX REPLACE "\n +" "\n" text "${text}")
  endif()
  if(extension STREQUAL "js")
    string(REGEX REPLACE "\n//[^\n]*" "\n" text "\n${text}")
    string(SUBSTRING "${text}" 1 -1 text)  # Without the line feed that was added in front.
  endif()
  file(WRITE ${work}/stripped/${file} "${text}")
  file(ARCHIVE_CREATE OUTPUT ${work}/stripped/${file}.gz PATHS ${work}/stripped/${file} FORMAT raw COMPRESSION GZip
       COMPRESSION_LEVEL 9)
  file(READ ${work}/stripped/${file}.gz bytes HEX)
  # Without the time of the build, which is the four bytes behind the first four.
  string(SUBSTRING "${bytes}" 0 8 head)
  string(SUBSTRING "${bytes}" 16 -1 rest)
  set(bytes "${head}00000000${rest}")
  string(REGEX REPLACE "(..)" ",0x\\1" bytes "${bytes}")
  string(SUBSTRING "${bytes}" 1 -1 bytes)
  set(path "/page/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "      {\"${path}\", \"${type_${extension}}\", Text(kFile${number}, sizeof(kFile${number}))},\n")
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
