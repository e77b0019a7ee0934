# Finds the packages that a program or library needs, by its ELF file and libraries.txt, because a machine has
# a database of packages only for its own processor. CPack includes this file.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/libraries.txt cria_libraries REGEX "^[^#]")
string(REPLACE "@VERSION@" "${CPACK_DEBIAN_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}" cria_libraries
       "${cria_libraries}")

# cria_depends(VARIABLE FILE): sets VARIABLE to the packages that FILE needs, in the form of a control file.
function(cria_depends variable file)
  execute_process(COMMAND ${CPACK_CRIA_READELF} -dW ${file} OUTPUT_VARIABLE dynamic
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]+" needed "${dynamic}")
  set(packages)
  foreach(entry IN LISTS needed)
    string(REGEX REPLACE ".*\\[(.*)\\].*" "\\1" soname "${entry}")
    set(package)
    foreach(line IN LISTS cria_libraries)
      if(line MATCHES "^([^ ]+) +(.+)$" AND CMAKE_MATCH_1 STREQUAL soname)
        set(package "${CMAKE_MATCH_2}")
      endif()
    endforeach()
    if(NOT package)
      message(FATAL_ERROR "${file} needs ${soname}, but platforms/debian/libraries.txt does not name its "
                          "package; add a line for it.")
    endif()
    list(APPEND packages "${package}")
  endforeach()
  list(REMOVE_DUPLICATES packages)
  list(SORT packages)
  list(JOIN packages ", " packages)
  set(${variable} "${packages}" PARENT_SCOPE)
endfunction()
