# 32-bit Arm Linux on processors with NEON and VFPv4: the Cortex-A7 (Raspberry Pi 2), and all later ones in
# 32-bit mode. XNNPACK needs NEON; Highway needs both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(cria_target arm-linux-gnueabihf)
set(cria_emulator qemu-arm)
set(cria_preset armhf)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard")
# Since GCC 9, some structs are passed differently, and GCC notes each use; everything here is newer.
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wno-psabi")
