# The common part of the toolchain files for Debian's cross compilers, which set these variables first:
#   cria_target     the prefix of the compiler's name
#   cria_emulator   the program of qemu-user that runs what was built
#   cria_preset     the preset whose ./dev build makes the sysroot

set(CRIA_SYSROOT "$ENV{CRIA_SYSROOT}" CACHE PATH "The folder with the device's usr/include and usr/lib")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CRIA_SYSROOT)
if(NOT EXISTS "${CRIA_SYSROOT}/usr/lib/${cria_target}/libc.so.6")
  message(FATAL_ERROR "CRIA_SYSROOT='${CRIA_SYSROOT}' holds no libraries for ${cria_target}: "
                      "`./dev build ${cria_preset}` makes a folder that does, and builds with it.")
endif()
find_program(CRIA_CROSS_CXX_COMPILER ${cria_target}-g++)
find_program(CRIA_CROSS_C_COMPILER ${cria_target}-gcc)
if(NOT CRIA_CROSS_CXX_COMPILER OR NOT CRIA_CROSS_C_COMPILER)
  message(FATAL_ERROR "${cria_target}-g++ is not installed: run `./dev build ${cria_preset}`, or install "
                      "the packages of toolchains/debian-cross-packages.txt.")
endif()
if(cria_only_check)
  return()
endif()
set(CMAKE_SYSROOT "${CRIA_SYSROOT}")
set(CMAKE_C_COMPILER "${CRIA_CROSS_C_COMPILER}")
set(CMAKE_CXX_COMPILER "${CRIA_CROSS_CXX_COMPILER}")

# Programs that run during the build are this machine's; libraries and headers are the device's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(ENV{PKG_CONFIG_LIBDIR} "${CRIA_SYSROOT}/usr/lib/${cria_target}/pkgconfig:${CRIA_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CRIA_SYSROOT}")

# If the emulator is missing, the tests report it.
find_program(CRIA_EMULATOR ${cria_emulator})
if(CRIA_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${CRIA_EMULATOR};-L;${CRIA_SYSROOT}")
endif()
