# 64-bit Android: the NDK's own toolchain file, with settings that current apps need. The libraries that Cria
# needs must be built with the same NDK and installed in folders of CMAKE_PREFIX_PATH (a variable of CMake or of the
# environment).

foreach(folder "${CMAKE_ANDROID_NDK}" "$ENV{ANDROID_NDK_HOME}" "$ENV{ANDROID_NDK}")
  if(NOT CRIA_NDK AND NOT folder STREQUAL "")
    set(CRIA_NDK "${folder}" CACHE PATH "The folder of Android's NDK")
  endif()
endforeach()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CRIA_NDK CMAKE_PREFIX_PATH)
set(ndk_file "${CRIA_NDK}/build/cmake/android.toolchain.cmake")
if(NOT EXISTS "${ndk_file}")
  message(FATAL_ERROR "There is no Android NDK in '${CRIA_NDK}': install one, of release 28 or later, "
                      "from developer.android.com/ndk/downloads, then run "
                      "`ANDROID_NDK_HOME=FOLDER ./dev build android-arm64`.")
endif()
if(cria_only_check)
  return()
endif()

set(ANDROID_ABI arm64-v8a)
set(ANDROID_PLATFORM android-28)
set(ANDROID_STL c++_static)
include("${ndk_file}")
# Devices with Android 15 or later may have pages of 16 KiB.
add_link_options(-Wl,-z,max-page-size=16384)
# The NDK's file lets CMake search only in the NDK.
string(REPLACE ":" ";" prefixes "$ENV{CMAKE_PREFIX_PATH}")
list(APPEND CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH} ${prefixes})
