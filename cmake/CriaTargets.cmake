# How the folders become targets. A folder's headers are reachable only through its own include root,
# so that a folder can include another only by linking it: arrows that the design does not have fail
# to compile.

add_library(cria_options INTERFACE)
# Designated initializers leave fields at their defaults on purpose.
target_compile_options(cria_options INTERFACE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror)
# The linker removes functions that a program does not call.
target_compile_options(cria_options INTERFACE -ffunction-sections -fdata-sections)
target_link_options(cria_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  # Bits in place of 24 bytes for each address that is to be set when loading; glibc reads them from 2.36 on.
  target_link_options(cria_options INTERFACE -Wl,-z,pack-relative-relocs)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # Code and read-only data share a segment, as GNU ld has it on Arm by default: separate ones are padded to
  # whole pages.
  target_link_options(cria_options INTERFACE -Wl,-z,noseparate-code)
endif()
if(CRIA_SANITIZE)
  # The vptr check needs RTTI, which the runtime does without.
  target_compile_options(cria_options INTERFACE
    -fsanitize=${CRIA_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(cria_options INTERFACE -fsanitize=${CRIA_SANITIZE})
endif()

# Where nothing is thrown or caught. Of the processors known, 32-bit Arm alone has no tables then for the
# exceptions of others, of operator new for one, to pass through to the C API.
set(cria_no_exceptions -fno-exceptions -fno-rtti)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv7")
  list(APPEND cria_no_exceptions -funwind-tables)
endif()

# cria_include_root(VARIABLE FOLDER [NAME]): the include root with which headers of FOLDER, a whole path,
# are included as "NAME/header.h". NAME is the folder's own unless it is given, such as outer/inner.
function(cria_include_root variable folder)
  set(name ${ARGV2})
  if(NOT name)
    get_filename_component(name ${folder} NAME)
  endif()
  string(REPLACE "/" "-" root ${name})
  set(root ${CMAKE_BINARY_DIR}/include-roots/${root})
  cmake_path(GET name PARENT_PATH outer)
  file(MAKE_DIRECTORY ${root}/${outer})
  file(CREATE_LINK ${folder} ${root}/${name} SYMBOLIC)
  set(${variable} ${root} PARENT_SCOPE)
endfunction()

# cria_folder(NAME SOURCES... [COLD sources...] [EXCEPTIONS] [LINKS targets...] [PRIVATE_LINKS targets...])
# The library cria_NAME of the sources in this folder, whose headers are included as "NAME/header.h".
# NAME may be outer/inner; the library is cria_outer_inner then. COLD sources run once a start or less,
# so that their size counts and not their speed. LINKS are folders whose headers its own headers
# may include; PRIVATE_LINKS serve its sources alone. Without EXCEPTIONS, it has neither exceptions nor
# RTTI.
function(cria_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXCEPTIONS" "" "COLD;LINKS;PRIVATE_LINKS")
  string(REPLACE "/" "_" target cria_${name})
  cria_include_root(include_root ${CMAKE_CURRENT_SOURCE_DIR} ${name})
  add_library(${target} STATIC ${arg_UNPARSED_ARGUMENTS} ${arg_COLD})
  set_source_files_properties(${arg_COLD} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  target_include_directories(${target} PUBLIC ${include_root})
  target_link_libraries(${target} PUBLIC ${arg_LINKS} PRIVATE cria_options ${arg_PRIVATE_LINKS})
  if(NOT arg_EXCEPTIONS)
    target_compile_options(${target} PRIVATE ${cria_no_exceptions})
  endif()
endfunction()
