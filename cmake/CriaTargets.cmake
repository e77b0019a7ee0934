# How the folders become targets. A folder's headers are reachable only through its own include root,
# so that a folder can include another only by linking it: arrows that the design does not have fail
# to compile.

add_library(cria_options INTERFACE)
# Designated initializers leave fields at their defaults on purpose.
target_compile_options(cria_options INTERFACE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror)
# What no program calls stays out of it.
target_compile_options(cria_options INTERFACE -ffunction-sections -fdata-sections)
target_link_options(cria_options INTERFACE -Wl,--gc-sections)
if(CRIA_SANITIZE)
  # The vptr check needs RTTI, which the runtime does without.
  target_compile_options(cria_options INTERFACE
    -fsanitize=${CRIA_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(cria_options INTERFACE -fsanitize=${CRIA_SANITIZE})
endif()

# cria_folder(NAME SOURCES... [EXCEPTIONS] [LINKS targets...] [PRIVATE_LINKS targets...])
# The library cria_NAME of the sources in this folder. LINKS are folders whose headers its own headers
# may include; PRIVATE_LINKS serve its sources alone. Without EXCEPTIONS, it has neither exceptions nor
# RTTI.
function(cria_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXCEPTIONS" "" "LINKS;PRIVATE_LINKS")
  set(target cria_${name})
  set(include_root ${CMAKE_BINARY_DIR}/include-roots/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_root}/${name} SYMBOLIC)

  add_library(${target} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${target} PUBLIC ${include_root})
  target_link_libraries(${target} PUBLIC ${arg_LINKS} PRIVATE cria_options ${arg_PRIVATE_LINKS})
  if(NOT arg_EXCEPTIONS)
    target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti)
  endif()
endfunction()
